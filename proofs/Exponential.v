(** Bounds of the real exponential function by arithmetic on whole numbers. *)

From Coq Require Import Reals ZArith List Lia Lra Psatz.
Open Scope R_scope.

(** ** Rounded division *)

Definition up (a b : Z) : Z := (- ((- a) / b))%Z.

Lemma down_le a b : (0 < b)%Z -> IZR (a / b) <= IZR a / IZR b.
Proof.
  intros Hb. assert (0 < IZR b) by now apply IZR_lt.
  apply Rmult_le_reg_r with (IZR b); trivial.
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite <- mult_IZR. apply IZR_le. rewrite Z.mul_comm. now apply Z.mul_div_le.
Qed.

Lemma up_ge a b : (0 < b)%Z -> IZR a / IZR b <= IZR (up a b).
Proof.
  intros Hb. unfold up. rewrite opp_IZR.
  pose proof (down_le (- a) b Hb) as H. rewrite opp_IZR in H.
  unfold Rdiv in *. lra.
Qed.

Lemma down_nonneg a b : (0 <= a)%Z -> (0 < b)%Z -> (0 <= a / b)%Z.
Proof. intros. now apply Z.div_pos. Qed.

(** ** Taylor's series *)

Fixpoint term (y : R) (k : nat) : R :=
  match k with O => 1 | S j => term y j * y / INR (S j) end.
Fixpoint partial (y : R) (k : nat) : R :=
  match k with O => 1 | S j => partial y j + term y (S j) end.

Lemma term_series y k : term y k = / INR (fact k) * y ^ k.
Proof.
  induction k as [|k IH]; [simpl; lra|].
  change (term y (S k)) with (term y k * y / INR (S k)). rewrite IH.
  change (fact (S k)) with (S k * fact k)%nat. rewrite mult_INR. simpl pow.
  field. split; [apply INR_fact_neq_0 | apply not_0_INR; lia].
Qed.

Lemma partial_series y k : partial y k = sum_f_R0 (fun i => / INR (fact i) * y ^ i) k.
Proof.
  induction k as [|k IH]; [simpl; lra|].
  change (partial y (S k)) with (partial y k + term y (S k)).
  rewrite IH, term_series. reflexivity.
Qed.

Lemma term_pos y k : 0 <= y -> 0 <= term y k.
Proof.
  intros. rewrite term_series. apply Rmult_le_pos; [|now apply pow_le].
  left. apply Rinv_0_lt_compat, INR_fact_lt_0.
Qed.

Lemma exp_series y : Un_cv (partial y) (exp y).
Proof.
  unfold exp. destruct (exist_exp y) as [l H]. simpl.
  unfold exp_in, infinite_sum in H. intros eps He. destruct (H eps He) as [N HN].
  exists N. intros n Hn. rewrite partial_series. now apply HN.
Qed.

Lemma partial_le_exp y k : 0 <= y -> partial y k <= exp y.
Proof.
  intros Hy. apply growing_ineq; [|apply exp_series].
  intros n. change (partial y (S n)) with (partial y n + term y (S n)).
  pose proof (term_pos y (S n) Hy). lra.
Qed.

Lemma remainder y k : 0 <= y <= / 2 -> forall j,
  partial y (k + j) + term y (k + j) <= partial y k + term y k.
Proof.
  intros Hy. induction j as [|j IH]; [rewrite Nat.add_0_r; lra|].
  replace (k + S j)%nat with (S (k + j)) by lia.
  change (partial y (S (k + j))) with (partial y (k + j) + term y (S (k + j))).
  enough (term y (S (k + j)) <= term y (k + j) / 2) by lra.
  change (term y (S (k + j))) with (term y (k + j) * y / INR (S (k + j))).
  pose proof (term_pos y (k + j) (proj1 Hy)) as Ht.
  assert (1 <= INR (S (k + j))) by (rewrite S_INR; pose proof (pos_INR (k + j)); lra).
  assert (0 < / INR (S (k + j)) <= 1).
  { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  unfold Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_l; trivial.
  nra.
Qed.

Lemma exp_le_partial y k : 0 <= y <= / 2 -> exp y <= partial y k + term y k.
Proof.
  intros Hy. apply Rnot_lt_le. intros Hlt.
  destruct (exp_series y (exp y - (partial y k + term y k))) as [N HN]; [lra|].
  specialize (HN (k + N)%nat). unfold R_dist in HN.
  pose proof (remainder y k Hy N) as Hr. pose proof (term_pos y (k + N) (proj1 Hy)).
  assert (Hn : (k + N >= N)%nat) by lia. specialize (HN Hn).
  apply Rabs_def2 in HN. lra.
Qed.

(** ** The same in whole numbers over [one] *)

Fixpoint series_low (fuel : nat) (n y t s one : Z) : Z :=
  match fuel with
  | O => s
  | S more => let t := (t * y / one / n)%Z in
              if (t =? 0)%Z then s else series_low more (n + 1) y t (s + t) one
  end.

Fixpoint series_high (fuel : nat) (n y t s one : Z) : Z :=
  match fuel with
  | O => (s + t)%Z
  | S more => let t := up (up (t * y) one) n in
              if (t <=? 1)%Z then (s + t + t)%Z else series_high more (n + 1) y t (s + t) one
  end.

Section Series.
  Variables (y one : Z).
  Hypothesis Hone : (0 < one)%Z.
  Hypothesis Hy : (0 <= y)%Z.
  Let Y := IZR y / IZR one.

  Lemma one_pos : 0 < IZR one.
  Proof. now apply IZR_lt. Qed.

  Lemma Y_pos : 0 <= Y.
  Proof.
    unfold Y, Rdiv. apply Rmult_le_pos; [now apply IZR_le|].
    left. apply Rinv_0_lt_compat, one_pos.
  Qed.

  Lemma series_low_ok fuel : forall k t s, (0 <= t)%Z ->
    IZR t <= term Y k * IZR one -> IZR s <= partial Y k * IZR one ->
    IZR (series_low fuel (Z.of_nat (S k)) y t s one) <= exp Y * IZR one.
  Proof.
    pose proof one_pos as H1. pose proof Y_pos as HY.
    assert (Hend : forall k s, IZR s <= partial Y k * IZR one -> IZR s <= exp Y * IZR one).
    { intros k s Hs. pose proof (partial_le_exp Y k HY). nra. }
    induction fuel as [|fuel IH]; intros k t s Ht Hterm Hs; [now apply (Hend k)|].
    cbn [series_low]. set (t' := (t * y / one / Z.of_nat (S k))%Z).
    destruct (t' =? 0)%Z; [now apply (Hend k)|].
    replace (Z.of_nat (S k) + 1)%Z with (Z.of_nat (S (S k))) by lia.
    assert (Hn : (0 < Z.of_nat (S k))%Z) by lia.
    assert (Hp : (0 <= t * y / one)%Z) by (apply down_nonneg; nia).
    assert (Ht' : IZR t' <= term Y (S k) * IZR one).
    { change (term Y (S k)) with (term Y k * Y / INR (S k)).
      unfold t'. eapply Rle_trans; [apply down_le; lia|].
      assert (Hd : IZR (t * y / one) <= IZR t * IZR y / IZR one).
      { rewrite <- mult_IZR. now apply down_le. }
      assert (Hk : 0 < INR (S k)) by (apply lt_0_INR; lia).
      rewrite <- INR_IZR_INZ. unfold Rdiv at 2.
      replace (term Y k * Y * / INR (S k) * IZR one) with
        ((term Y k * IZR one) * Y / INR (S k)) by (field; lra).
      unfold Rdiv. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
      eapply Rle_trans; [exact Hd|]. unfold Y, Rdiv. rewrite Rmult_assoc.
      apply Rmult_le_compat_r; [exact HY|exact Hterm]. }
    apply IH; trivial.
    - unfold t'. apply down_nonneg; lia.
    - rewrite plus_IZR. change (partial Y (S k)) with (partial Y k + term Y (S k)). lra.
  Qed.

  Lemma series_high_ok fuel : (2 * y <= one)%Z -> forall k t s,
    term Y k * IZR one <= IZR t -> partial Y k * IZR one <= IZR s ->
    exp Y * IZR one <= IZR (series_high fuel (Z.of_nat (S k)) y t s one).
  Proof.
    intros Hhalf. pose proof one_pos as H1. pose proof Y_pos as HY.
    assert (HY2 : Y <= / 2).
    { apply IZR_le in Hhalf. rewrite mult_IZR in Hhalf. unfold Y.
      apply Rmult_le_reg_r with (IZR one); trivial.
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (Hend : forall k t s, term Y k * IZR one <= IZR t -> partial Y k * IZR one <= IZR s ->
              exp Y * IZR one <= IZR (s + t)).
    { intros k t s Ht Hs. rewrite plus_IZR.
      pose proof (exp_le_partial Y k (conj HY HY2)). nra. }
    induction fuel as [|fuel IH]; intros k t s Hterm Hs; [now apply (Hend k)|].
    cbn [series_high]. set (t' := up (up (t * y) one) (Z.of_nat (S k))).
    assert (Ht' : term Y (S k) * IZR one <= IZR t').
    { change (term Y (S k)) with (term Y k * Y / INR (S k)).
      unfold t'. eapply Rle_trans; [|apply up_ge; lia].
      assert (Hd : IZR t * IZR y / IZR one <= IZR (up (t * y) one)).
      { rewrite <- mult_IZR. now apply up_ge. }
      assert (Hk : 0 < INR (S k)) by (apply lt_0_INR; lia).
      rewrite <- INR_IZR_INZ.
      replace (term Y k * Y / INR (S k) * IZR one) with
        ((term Y k * IZR one) * Y / INR (S k)) by (field; lra).
      unfold Rdiv at 1 2. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
      eapply Rle_trans; [|exact Hd]. unfold Y, Rdiv. rewrite (Rmult_assoc (IZR t)).
      apply Rmult_le_compat_r; [exact HY|exact Hterm]. }
    assert (Hs' : partial Y (S k) * IZR one <= IZR (s + t')).
    { rewrite plus_IZR. change (partial Y (S k)) with (partial Y k + term Y (S k)). lra. }
    destruct (t' <=? 1)%Z; [now apply (Hend (S k))|].
    replace (Z.of_nat (S k) + 1)%Z with (Z.of_nat (S (S k))) by lia.
    now apply IH.
  Qed.
End Series.

(** ** Doubling the argument *)

Fixpoint squared_low (m : nat) (v one : Z) : Z :=
  match m with O => v | S j => squared_low j (v * v / one)%Z one end.
Fixpoint squared_high (m : nat) (v one : Z) : Z :=
  match m with O => v | S j => squared_high j (up (v * v) one) one end.

Lemma exp_double x : exp (2 * x) = exp x * exp x.
Proof. rewrite <- exp_plus. f_equal. lra. Qed.

Lemma squared_low_ok m : forall v one x, (0 < one)%Z -> (0 <= v)%Z ->
  IZR v <= exp x * IZR one -> IZR (squared_low m v one) <= exp (2 ^ m * x) * IZR one.
Proof.
  induction m as [|m IH]; intros v one x H1 Hv H; cbn [squared_low].
  - simpl. now rewrite Rmult_1_l.
  - replace (2 ^ S m * x) with (2 ^ m * (2 * x)) by (simpl; ring).
    apply IH; trivial; [apply down_nonneg; nia|].
    eapply Rle_trans; [now apply down_le|]. rewrite mult_IZR, exp_double.
    assert (0 < IZR one) by now apply IZR_lt. assert (0 <= IZR v) by now apply IZR_le.
    apply Rmult_le_reg_r with (IZR one); trivial.
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    replace (exp x * exp x * IZR one * IZR one) with
      ((exp x * IZR one) * (exp x * IZR one)) by ring.
    now apply Rmult_le_compat.
Qed.

Lemma squared_high_ok m : forall v one x, (0 < one)%Z ->
  exp x * IZR one <= IZR v -> exp (2 ^ m * x) * IZR one <= IZR (squared_high m v one).
Proof.
  induction m as [|m IH]; intros v one x H1 H; cbn [squared_high].
  - simpl. now rewrite Rmult_1_l.
  - replace (2 ^ S m * x) with (2 ^ m * (2 * x)) by (simpl; ring).
    apply IH; trivial.
    eapply Rle_trans; [|now apply up_ge]. rewrite mult_IZR, exp_double.
    assert (0 < IZR one) by now apply IZR_lt.
    pose proof (exp_pos x).
    apply Rmult_le_reg_r with (IZR one); trivial.
    unfold Rdiv. rewrite (Rmult_assoc (IZR v * IZR v)), Rinv_l, Rmult_1_r by lra.
    replace (exp x * exp x * IZR one * IZR one) with
      ((exp x * IZR one) * (exp x * IZR one)) by ring.
    assert (0 <= exp x * IZR one) by nra.
    now apply Rmult_le_compat.
Qed.

(** ** Bounds of e^(a/b), over 2^bits *)

(** How often the argument is halved, and how many bits are kept more: any number is sound. *)
Definition halvings (a b : Z) : nat := Z.to_nat (Z.log2 (a / b + 1) + 8)%Z.
Definition width (bits : Z) (m : nat) : Z := (bits + 2 * Z.of_nat m + 32)%Z.

Definition exp_low (bits a b : Z) : Z :=
  let m := halvings a b in
  let one := (2 ^ width bits m)%Z in
  let y := (a * one / (b * 2 ^ Z.of_nat m))%Z in
  let v := series_low (Z.to_nat (width bits m)) 1 y one one one in
  (squared_low m v one / 2 ^ (2 * Z.of_nat m + 32))%Z.

Definition exp_high (bits a b : Z) : option Z :=
  let m := halvings a b in
  let one := (2 ^ width bits m)%Z in
  let y := up (a * one) (b * 2 ^ Z.of_nat m) in
  if (2 * y <=? one)%Z then
    let v := series_high (Z.to_nat (width bits m)) 1 y one one one in
    Some (up (squared_high m v one) (2 ^ (2 * Z.of_nat m + 32)))
  else None.

Lemma exp_mono x y : x <= y -> exp x <= exp y.
Proof. intros [H|H]; [left; now apply exp_increasing | subst; lra]. Qed.

Lemma pow2_IZR m : 2 ^ m = IZR (2 ^ Z.of_nat m).
Proof.
  induction m as [|m IH]; [reflexivity|].
  rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. rewrite mult_IZR, <- IH. simpl. lra.
Qed.

Lemma pow2_pos k : (0 <= k)%Z -> (0 < 2 ^ k)%Z.
Proof. intros. now apply Z.pow_pos_nonneg. Qed.

Lemma series_low_nonneg fuel : forall n y t s one, (0 < n)%Z -> (0 <= y)%Z -> (0 < one)%Z ->
  (0 <= t)%Z -> (0 <= s)%Z -> (0 <= series_low fuel n y t s one)%Z.
Proof.
  induction fuel as [|fuel IH]; intros n y t s one Hn Hy H1 Ht Hs; cbn [series_low]; trivial.
  destruct (_ =? 0)%Z; trivial.
  assert (0 <= t * y / one / n)%Z by (apply down_nonneg; [apply down_nonneg|]; nia).
  apply IH; lia.
Qed.

Section Bounds.
  Variables (bits a b : Z).
  Hypothesis Hbits : (0 <= bits)%Z.
  Hypothesis Ha : (0 <= a)%Z.
  Hypothesis Hb : (0 < b)%Z.
  Let m := halvings a b.
  Let one := (2 ^ width bits m)%Z.

  Lemma one_split : one = (2 ^ bits * 2 ^ (2 * Z.of_nat m + 32))%Z.
  Proof. unfold one, width. rewrite <- Z.pow_add_r by lia. f_equal. lia. Qed.

  Lemma one_positive : (0 < one)%Z.
  Proof. apply pow2_pos. unfold width. lia. Qed.

  Lemma exp_low_ok : IZR (exp_low bits a b) <= exp (IZR a / IZR b) * IZR (2 ^ bits).
  Proof.
    unfold exp_low. fold m. fold one.
    pose proof one_positive as H1. assert (HR1 : 0 < IZR one) by now apply IZR_lt.
    set (M := (2 ^ Z.of_nat m)%Z). assert (HM : (0 < M)%Z) by (apply pow2_pos; lia).
    set (y := (a * one / (b * M))%Z).
    assert (Hy : (0 <= y)%Z) by (apply down_nonneg; nia).
    set (v := series_low (Z.to_nat (width bits m)) 1 y one one one).
    assert (Hv0 : (0 <= v)%Z) by (apply series_low_nonneg; lia).
    assert (Hv : IZR v <= exp (IZR y / IZR one) * IZR one).
    { unfold v. change 1%Z with (Z.of_nat 1) at 1.
      apply series_low_ok; trivial; try lia; simpl; lra. }
    pose proof (squared_low_ok m v one _ H1 Hv0 Hv) as Hs.
    assert (Hle : exp (2 ^ m * (IZR y / IZR one)) <= exp (IZR a / IZR b)).
    { apply exp_mono. rewrite pow2_IZR. fold M.
      assert (HyR : IZR y <= IZR (a * one) / IZR (b * M)) by (apply down_le; nia).
      rewrite !mult_IZR in HyR.
      assert (0 < IZR M) by now apply IZR_lt. assert (0 < IZR b) by now apply IZR_lt.
      apply Rle_trans with (IZR M * ((IZR a * IZR one / (IZR b * IZR M)) / IZR one)).
      - apply Rmult_le_compat_l; [lra|]. unfold Rdiv at 1 2.
        apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat | exact HyR].
      - right. field. lra. }
    set (rest := (2 ^ (2 * Z.of_nat m + 32))%Z).
    assert (Hrest : (0 < rest)%Z) by (apply pow2_pos; lia).
    assert (0 < IZR rest) by now apply IZR_lt.
    eapply Rle_trans; [apply down_le; trivial|].
    apply Rmult_le_reg_r with (IZR rest); trivial.
    unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    rewrite Rmult_assoc, <- mult_IZR. unfold rest. rewrite <- one_split.
    eapply Rle_trans; [exact Hs|]. apply Rmult_le_compat_r; lra.
  Qed.

  Lemma exp_high_ok F : exp_high bits a b = Some F ->
    exp (IZR a / IZR b) * IZR (2 ^ bits) <= IZR F.
  Proof.
    unfold exp_high. fold m. fold one.
    pose proof one_positive as H1. assert (HR1 : 0 < IZR one) by now apply IZR_lt.
    set (M := (2 ^ Z.of_nat m)%Z). assert (HM : (0 < M)%Z) by (apply pow2_pos; lia).
    set (y := up (a * one) (b * M)).
    destruct (2 * y <=? one)%Z eqn:Hhalf; [|discriminate].
    apply Z.leb_le in Hhalf. intros [= HF]. rewrite <- HF. clear HF.
    assert (Hy : (0 <= y)%Z).
    { unfold y, up. assert (- (a * one) / (b * M) <= 0)%Z; [|lia].
      apply Z.div_le_upper_bound; nia. }
    set (v := series_high (Z.to_nat (width bits m)) 1 y one one one).
    assert (Hv : exp (IZR y / IZR one) * IZR one <= IZR v).
    { unfold v. change 1%Z with (Z.of_nat 1) at 1.
      apply series_high_ok; trivial; simpl; lra. }
    pose proof (squared_high_ok m v one _ H1 Hv) as Hs.
    assert (Hle : exp (IZR a / IZR b) <= exp (2 ^ m * (IZR y / IZR one))).
    { apply exp_mono. rewrite pow2_IZR. fold M.
      assert (HyR : IZR (a * one) / IZR (b * M) <= IZR y) by (apply up_ge; nia).
      rewrite !mult_IZR in HyR.
      assert (0 < IZR M) by now apply IZR_lt. assert (0 < IZR b) by now apply IZR_lt.
      apply Rle_trans with (IZR M * ((IZR a * IZR one / (IZR b * IZR M)) / IZR one)).
      - right. field. lra.
      - apply Rmult_le_compat_l; [lra|]. unfold Rdiv at 1 3.
        apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat | exact HyR]. }
    set (rest := (2 ^ (2 * Z.of_nat m + 32))%Z).
    assert (Hrest : (0 < rest)%Z) by (apply pow2_pos; lia).
    assert (0 < IZR rest) by now apply IZR_lt.
    eapply Rle_trans; [|apply up_ge; trivial].
    apply Rmult_le_reg_r with (IZR rest); trivial.
    unfold Rdiv at 2. rewrite (Rmult_assoc (IZR (squared_high m v one))), Rinv_l, Rmult_1_r by lra.
    rewrite Rmult_assoc, <- mult_IZR. unfold rest. rewrite <- one_split.
    eapply Rle_trans; [|exact Hs]. apply Rmult_le_compat_r; lra.
  Qed.
End Bounds.
