(** What the checker says of a matrix is so: rows, promises, costs. *)

From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Optmech Require Import Definitions File Exponential Rates Checker Sums.
Import ListNotations.
Open Scope R_scope.

Section Matrix.
  Variables (n m : nat) (k : Z) (rows : list (list Z)).
  Hypothesis Hmech : is_mechanism n m k rows = true.

  Let P (s o : nat) : R := over k (entry rows s o).
  Let one := IZR (2 ^ k).

  Lemma bits_nonneg : (0 <= k)%Z.
  Proof. pose proof Hmech as Hall. unfold is_mechanism in Hall. now split_ands. Qed.

  Lemma one_pos' : 0 < one.
  Proof. apply IZR_lt, pow2_pos, bits_nonneg. Qed.

  Lemma rows_shaped : shaped n m rows = true.
  Proof. pose proof Hmech as Hall. unfold is_mechanism in Hall. now split_ands. Qed.

  Lemma rows_length : length rows = n.
  Proof. exact (proj1 (shaped_ok _ _ _ rows_shaped)). Qed.

  Lemma row_length s : (s < n)%nat -> length (nth s rows []) = m.
  Proof. exact (proj2 (shaped_ok _ _ _ rows_shaped) s). Qed.

  Lemma entry_nonneg s o : (0 <= entry rows s o)%Z.
  Proof.
    destruct (Nat.lt_ge_cases s n) as [Hs|Hs].
    - pose proof Hmech as Hall. unfold is_mechanism in Hall. split_ands.
      match goal with H : forallb _ rows = true |- _ => rewrite forallb_forall in H;
        specialize (H (nth s rows [])) end.
      assert (Hin : In (nth s rows []) rows) by (apply nth_In; now rewrite rows_length).
      match goal with H : In _ _ -> _ |- _ => specialize (H Hin) end. split_ands.
      now apply nonnegative_ok.
    - unfold entry. rewrite (nth_overflow rows) by now rewrite rows_length.
      destruct o; simpl; lia.
  Qed.

  Lemma P_entry s o : P s o = IZR (entry rows s o) / one.
  Proof. reflexivity. Qed.

  Lemma is_mechanism_ok : mechanism n m P.
  Proof.
    intros s Hs. split.
    - intros o Ho. unfold P, over, Rdiv. apply Rmult_le_pos; [apply IZR_le, entry_nonneg|].
      left. apply Rinv_0_lt_compat, one_pos'.
    - pose proof one_pos'. unfold P, over.
      rewrite (sum_ext m _ (fun o => / one * IZR (entry rows s o)))
        by (intros; unfold one, Rdiv; ring).
      rewrite sum_scale. unfold entry. rewrite <- (total_sum _ m) by now rewrite row_length.
      pose proof Hmech as Hall. unfold is_mechanism in Hall. split_ands.
      match goal with H : forallb _ rows = true |- _ => rewrite forallb_forall in H;
        specialize (H (nth s rows [])) end.
      assert (Hin : In (nth s rows []) rows) by (apply nth_In; now rewrite rows_length).
      match goal with H : In _ _ -> _ |- _ => specialize (H Hin) end. split_ands.
      match goal with H : total _ = _ |- _ => rewrite H end. fold one. field. lra.
  Qed.

  (** *** Ratios *)

  Lemma all_seen_ok test : forall x y window, all_seen test x y window = true ->
    forall o, (o < length x)%nat -> (o < length y)%nat -> nth o window true = true ->
    test (nth o x 0%Z) (nth o y 0%Z) = true.
  Proof.
    induction x as [|a x IH]; intros y window H o Hx Hy Hw; simpl in Hx; [lia|].
    destruct y as [|b y]; simpl in Hy; [lia|]. cbn [all_seen] in H.
    apply andb_prop in H. destruct H as [H1 H2]. destruct o as [|o].
    - destruct window as [|[|] window]; trivial. simpl in Hw. discriminate.
    - cbn [nth]. apply (IH y (tl window) H2 o); [lia|lia|].
      destruct window; simpl in *; [destruct o|]; trivial.
  Qed.

  Lemma rows_keep_ok e x y window : exponent_ok e ->
    (forall o, (0 <= nth o x 0)%Z) -> (forall o, (0 <= nth o y 0)%Z) ->
    length x = m -> length y = m ->
    rows_keep (low 128 e) e x y window = true ->
    forall o, (o < m)%nat -> nth o window true = true ->
    IZR (nth o x 0%Z) <= exp (exponent_value e) * IZR (nth o y 0%Z).
  Proof.
    intros He Hx Hy Hlx Hly H o Ho Hw. unfold rows_keep in H.
    eapply at_most_power_ok; trivial.
    eapply all_seen_ok; eauto; lia.
  Qed.

  Lemma ratios_ok r bits d window :
    keeps n m k rows (FRatios r bits d window) = true ->
    kept n m P (meant (FRatios r bits d window)).
  Proof.
    cbn [keeps meant kept]. intros H i j o v Hi Hj Ho Hlim Hseen. split_ands.
    match goal with H : forallb _ (seq 0 n) = true |- _ => rename H into Hall end.
    rewrite forall_seq in Hall. specialize (Hall i Hi). cbv beta zeta in Hall.
    rewrite forall_seq in Hall. specialize (Hall j Hj). cbv beta in Hall.
    destruct (nth j (nth i d []) None) as [z|]; [|discriminate].
    injection Hlim as <-. cbv zeta in Hall. split_ands.
    destruct (exponent_of_ok r bits z) as [He Hv]; trivial.
    rewrite <- Hv. unfold P, over.
    assert (Hle := rows_keep_ok _ _ _ _ He (entry_nonneg i) (entry_nonneg j)
      (row_length i Hi) (row_length j Hj) ltac:(eassumption) o Ho Hseen).
    fold one. pose proof one_pos'. unfold Rdiv.
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
    exact Hle.
  Qed.

  (** *** Distributions *)

  Lemma pair_fits_ok a b d : pair_fits n (a, b, d) = true ->
    length a = n /\ length b = n /\ nonnegative a = true /\ nonnegative b = true /\
    (0 < total a)%Z /\ total b = total a /\ (0 <= d)%Z.
  Proof.
    unfold pair_fits. intros. split_ands.
    repeat match goal with H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H end.
    repeat split; trivial. lia.
  Qed.

  Lemma pushed_mixed a o : length a = n -> (0 < total a)%Z -> (o < m)%nat ->
    pushed n (share a) P o = IZR (nth o (mixed m a rows) 0%Z) / (IZR (total a) * one).
  Proof.
    intros Ha Ht Ho. rewrite (mixed_nth m a rows n) by
      (try (intros; apply row_length; rewrite rows_length in *); lia).
    unfold pushed. apply IZR_lt in Ht. pose proof one_pos'.
    unfold Rdiv. rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros s Hs.
    unfold share, P, over. fold (total a). fold one. field. lra.
  Qed.

  Lemma mixed_nonneg a o : length a = n -> nonnegative a = true ->
    (0 <= nth o (mixed m a rows) 0)%Z.
  Proof.
    intros Ha Hn. apply le_IZR. rewrite (mixed_nth m a rows n) by
      (try (intros; apply row_length; rewrite rows_length in *); lia).
    apply sum_nonneg. intros s _. apply Rmult_le_pos; apply IZR_le;
      [now apply nonnegative_ok | apply entry_nonneg].
  Qed.

  Lemma mixed_rows_length a : length (mixed m a rows) = m.
  Proof. apply mixed_length. intros. apply row_length. now rewrite <- rows_length. Qed.

  Lemma in_pairs r bits pairs a' b' v : In (a', b', v) (map (pair_meant r bits) pairs) ->
    exists a b d, In (a, b, d) pairs /\ a' = share a /\ b' = share b /\ v = value r * over bits d.
  Proof.
    rewrite in_map_iff. intros ([[a b] d] & Heq & Hin). exists a, b, d.
    unfold pair_meant in Heq. injection Heq as <- <- <-. auto.
  Qed.

  Lemma lifted_ok r bits pairs :
    keeps n m k rows (FLifted r bits pairs) = true ->
    kept n m P (meant (FLifted r bits pairs)).
  Proof.
    cbn [keeps meant kept]. intros H a' b' v Hin o Ho. split_ands.
    repeat match goal with H : forallb _ pairs = true |- _ => rewrite forallb_forall in H end.
    apply in_pairs in Hin. destruct Hin as (a & b & d & Hin & -> & -> & ->).
    assert (Hfit : pair_fits n (a, b, d) = true) by auto.
    assert (Hk : lifted_keeps m rows r bits (a, b, d) = true) by auto.
    destruct (pair_fits_ok _ _ _ Hfit) as (Ha & Hb & Hna & Hnb & Ht & Heq & Hd).
    unfold lifted_keeps in Hk. cbv zeta in Hk.
    destruct (exponent_of_ok r bits d) as [He Hv]; trivial.
    rewrite <- Hv, !pushed_mixed by (trivial; lia). rewrite Heq.
    apply IZR_lt in Ht. pose proof one_pos'.
    assert (0 < IZR (total a) * one) by nra.
    unfold Rdiv. rewrite <- Rmult_assoc.
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
    eapply rows_keep_ok; eauto using mixed_rows_length, mixed_nonneg.
    destruct o; reflexivity.
  Qed.

  Lemma excess_sum F D : forall x y w, (0 < IZR D) -> length x = length y ->
    (length x <= w)%nat ->
    IZR (excess (F, D) x y) =
    sum w (fun o => Rmax 0 (IZR (nth o x 0%Z) * IZR D - IZR (nth o y 0%Z) * IZR F)).
  Proof.
    induction x as [|a x IH]; intros [|b y] w HD Hl Hw; simpl in Hl; try lia.
    - simpl. symmetry. apply sum_zero. intros o _.
      destruct o; simpl; rewrite !Rmult_0_l, Rminus_0_r; apply Rmax_left; lra.
    - destruct w as [|w]; [simpl in Hw; lia|]. rewrite sum_first. cbn [excess nth fst snd].
      rewrite plus_IZR, (IH y w); trivial; [|lia|simpl in Hw; lia]. f_equal.
      rewrite <- !mult_IZR, <- minus_IZR. generalize (a * D - b * F)%Z. intros z.
      destruct (Z.max_spec 0 z) as [[Hz ->]|[Hz ->]].
      + symmetry. apply Rmax_right, IZR_le. lia.
      + symmetry. apply Rmax_left, IZR_le. lia.
  Qed.

  Lemma approximate_ok r bits pairs dn dd :
    keeps n m k rows (FApproximate r bits pairs dn dd) = true ->
    kept n m P (meant (FApproximate r bits pairs dn dd)).
  Proof.
    cbn [keeps meant kept]. intros H a' b' v Hin. split_ands.
    repeat match goal with H : forallb _ pairs = true |- _ => rewrite forallb_forall in H end.
    apply in_pairs in Hin. destruct Hin as (a & b & d & Hin & -> & -> & ->).
    assert (Hfit : pair_fits n (a, b, d) = true) by auto.
    assert (Hk : approximate_keeps m k rows r bits dn dd (a, b, d) = true) by auto.
    destruct (pair_fits_ok _ _ _ Hfit) as (Ha & Hb & Hna & Hnb & Ht & Heq & Hd).
    unfold approximate_keeps in Hk. cbv zeta in Hk.
    destruct (exponent_of_ok r bits d) as [He Hv]; trivial.
    rewrite <- Hv. set (e := exponent_of r bits d) in *.
    pose proof bits_nonneg as Hk0. pose proof one_pos' as Hone.
    pose proof (low_ok (k + 256) e ltac:(lia) He) as Hlow.
    destruct (low (k + 256) e) as [F D]. destruct Hlow as [HD HF]. cbn [snd] in Hk.
    apply Z.leb_le in Hk. apply IZR_le in Hk. rewrite !mult_IZR in Hk. fold one in Hk.
    apply IZR_lt in HD.
    rewrite (excess_sum F D _ _ m HD) in Hk
      by (rewrite ?mixed_rows_length; lia || trivial).
    match goal with H : (0 < dd)%Z |- _ => apply IZR_lt in H end. assert (HtR := IZR_lt _ _ Ht).
    set (T := IZR (total a)) in *.
    assert (HDT : 0 < IZR D * (T * one)) by (apply Rmult_lt_0_compat; trivial; nra).
    apply Rle_trans with (sum m (fun o => / (IZR D * (T * one)) *
      Rmax 0 (IZR (nth o (mixed m a rows) 0%Z) * IZR D - IZR (nth o (mixed m b rows) 0%Z) * IZR F))).
    - apply sum_le. intros o Ho. rewrite !pushed_mixed by (trivial; lia). rewrite Heq. fold T.
      assert (Hyn : 0 <= IZR (nth o (mixed m b rows) 0%Z)) by (apply IZR_le; now apply mixed_nonneg).
      set (x := IZR (nth o (mixed m a rows) 0%Z)) in *.
      set (y := IZR (nth o (mixed m b rows) 0%Z)) in *.
      assert (Hinv : 0 < / (IZR D * (T * one))) by now apply Rinv_0_lt_compat.
      apply Rmax_lub.
      + apply Rmult_le_pos; [lra|]. apply Rmax_l.
      + eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply Rmax_r]].
        replace (/ (IZR D * (T * one)) * (x * IZR D - y * IZR F)) with
          (x / (T * one) - IZR F / IZR D * (y / (T * one))) by (field; nra).
        assert (0 <= y / (T * one)).
        { apply Rmult_le_pos; trivial. left. apply Rinv_0_lt_compat. nra. }
        nra.
    - rewrite sum_scale.
      set (X := sum m _) in *.
      apply Rmult_le_reg_r with (IZR D * (T * one) * IZR dd); [nra|].
      replace (/ (IZR D * (T * one)) * X * (IZR D * (T * one) * IZR dd)) with (X * IZR dd)
        by (field; repeat split; nra).
      replace (IZR dn / IZR dd * (IZR D * (T * one) * IZR dd)) with
        (IZR dn * (IZR D * (T * one))) by (field; lra). lra.
  Qed.

  (** *** Means *)

  Lemma dot_row c s bits : (0 <= bits)%Z -> (length c <= m)%nat ->
    IZR (dot c (nth s rows [])) = sum m (fun o => over bits (nth o c 0%Z) * P s o) *
      (IZR (2 ^ bits) * one).
  Proof.
    intros Hb Hc. rewrite (dot_sum c _ m) by lia. rewrite Rmult_comm, <- sum_scale.
    apply sum_ext. intros o _. unfold P, over, entry. fold one.
    pose proof one_pos'. pose proof (IZR_lt _ _ (pow2_pos bits Hb)). field. lra.
  Qed.

  Lemma divided X a b c : (0 < b)%Z -> 0 < c -> X * c * IZR b <= IZR a * c -> X <= IZR a / IZR b.
  Proof.
    intros Hb Hc H. apply IZR_lt in Hb. apply Rmult_le_reg_r with (IZR b * c); [nra|].
    replace (IZR a / IZR b * (IZR b * c)) with (IZR a * c) by (field; lra). lra.
  Qed.

  Lemma scale_pos bits : (0 <= bits)%Z -> 0 < IZR (2 ^ bits) * one.
  Proof. intros. pose proof one_pos'. pose proof (IZR_lt _ _ (pow2_pos bits H)). nra. Qed.

  Lemma mean_ok bits u a b :
    keeps n m k rows (FMean bits u a b) = true -> kept n m P (meant (FMean bits u a b)).
  Proof.
    cbn [keeps meant kept]. intros H. split_ands.
    match goal with H : shaped n m u = true |- _ => rename H into Hu end.
    match goal with H : (dots u rows * b <= _)%Z |- _ => rename H into Hle end.
    apply IZR_le in Hle. rewrite !mult_IZR in Hle. fold one in Hle.
    rewrite (dots_sum u rows n m) in Hle;
      [|rewrite (proj1 (shaped_ok _ _ _ Hu)); lia|now apply (shaped_most n)].
    apply (divided _ a b (IZR (2 ^ bits) * one)); trivial; [now apply scale_pos|].
    enough (Heq : sum n (fun s => sum m (fun o => over bits (entry u s o) * P s o)) *
      (IZR (2 ^ bits) * one) =
      sum n (fun s => sum m (fun o => IZR (entry u s o) * IZR (entry rows s o)))) by (rewrite Heq; lra).
    rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros s _.
    rewrite <- sum_scale. apply sum_ext. intros o _. unfold P, over. fold one.
    pose proof one_pos'. assert (0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    field. lra.
  Qed.

  Lemma means_ok bits u a b :
    keeps n m k rows (FMeans bits u a b) = true -> kept n m P (meant (FMeans bits u a b)).
  Proof.
    cbn [keeps meant kept]. intros H s Hs. split_ands.
    match goal with H : shaped n m u = true |- _ => rename H into Hu end.
    match goal with H : forallb _ (seq 0 n) = true |- _ => rename H into Hall end.
    rewrite forall_seq in Hall. specialize (Hall s Hs). cbv beta in Hall. split_ands.
    apply IZR_le in Hall. rewrite !mult_IZR in Hall. fold one in Hall.
    rewrite (dot_row _ s bits ltac:(trivial) (shaped_most n m u Hu s)) in Hall.
    apply (divided _ _ b (IZR (2 ^ bits) * one)); try assumption; now apply scale_pos.
  Qed.

  (** *** The best guesses *)

  Lemma guessed_ok bits w o : (0 <= bits)%Z -> shaped (length w) n w = true ->
    length w <> O -> (o < m)%nat ->
    IZR (guessed w rows o) <=
    least (length w) (fun t => sum n (fun s => over bits (entry w t s) * P s o)) *
      (IZR (2 ^ bits) * one).
  Proof.
    intros Hb Hw Hne Ho. pose proof (scale_pos bits Hb) as Hc.
    assert (H2 : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    pose proof one_pos'. set (c := IZR (2 ^ bits) * one) in *.
    apply Rmult_le_reg_r with (/ c); [now apply Rinv_0_lt_compat|].
    rewrite (Rmult_assoc _ c), Rinv_r, Rmult_1_r by lra.
    apply le_least; [lia|]. intros t Ht.
    unfold guessed. cbv zeta. set (col := column rows o).
    assert (Hmin := least_of_le (map (fun costs => dot costs col) w) t
      ltac:(now rewrite map_length)).
    assert (Hn : nth t (map (fun costs => dot costs col) w) 0%Z = dot (nth t w []) col).
    { now rewrite (map_nth (fun costs => dot costs col) w []). }
    rewrite Hn in Hmin. apply IZR_le in Hmin.
    rewrite (dot_sum _ col n) in Hmin by now apply (shaped_most (length w)).
    apply Rmult_le_reg_r with c; trivial. rewrite (Rmult_assoc _ (/ c)), Rinv_l, Rmult_1_r by lra.
    eapply Rle_trans; [exact Hmin|]. right.
    rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros s _.
    assert (Hcol : nth s col 0%Z = entry rows s o).
    { transitivity (nth s col ((fun row => nth o row 0%Z) [])); [now destruct o|].
      exact (map_nth (fun row => nth o row 0%Z) rows [] s). }
    rewrite Hcol. unfold P, over, entry, c. fold one. field. lra.
  Qed.

  Lemma guesses_ok bits w : (0 <= bits)%Z -> shaped (length w) n w = true -> length w <> O ->
    IZR (sum_of m (guessed w rows)) <=
    sum m (fun o => least (length w) (fun t => sum n (fun s => over bits (entry w t s) * P s o))) *
      (IZR (2 ^ bits) * one).
  Proof.
    intros Hb Hw Hne. rewrite sum_of_sum, Rmult_comm, <- sum_scale.
    apply sum_le. intros o Ho. rewrite Rmult_comm. now apply guessed_ok.
  Qed.

  Lemma adversary_ok bits w a b :
    keeps n m k rows (FAdversary bits w a b) = true -> kept n m P (meant (FAdversary bits w a b)).
  Proof.
    cbn [keeps meant kept]. intros H. split_ands.
    match goal with H : negb _ = true |- _ => apply negb_true_iff, Nat.eqb_neq in H end.
    match goal with H : (a * _ <= _)%Z |- _ => rename H into Hle end.
    apply IZR_le in Hle. rewrite !mult_IZR in Hle. fold one in Hle.
    match goal with H : (0 < b)%Z |- _ => apply IZR_lt in H end.
    pose proof (guesses_ok bits w ltac:(trivial) ltac:(trivial) ltac:(trivial)) as Hg.
    pose proof (scale_pos bits ltac:(trivial)) as Hc.
    set (X := sum m _) in *. set (c := IZR (2 ^ bits) * one) in *.
    apply Rmult_le_reg_r with (IZR b * c); [nra|].
    replace (IZR a / IZR b * (IZR b * c)) with (IZR a * c) by (field; lra). nra.
  Qed.

  (** *** Zeros *)

  Lemma zeros_outside_ok : forall row ok, zeros_outside ok row = true ->
    forall o, nth o ok true = false -> nth o row 0%Z = 0%Z.
  Proof.
    induction row as [|x row IH]; intros ok H o Ho; [destruct o; reflexivity|].
    cbn [zeros_outside] in H. apply andb_prop in H. destruct H as [H1 H2].
    destruct o as [|o].
    - destruct ok as [|[|] ok]; simpl in Ho; try discriminate. simpl. now apply Z.eqb_eq.
    - cbn [nth]. apply (IH (tl ok)); trivial. destruct ok; simpl in *; [destruct o|]; trivial.
  Qed.

  Lemma support_ok ok :
    keeps n m k rows (FSupport ok) = true -> kept n m P (meant (FSupport ok)).
  Proof.
    cbn [keeps meant kept]. intros H s o Hs Ho Hok. rewrite forall_seq in H.
    unfold P, over, entry. rewrite (zeros_outside_ok _ _ (H s Hs) o Hok). unfold Rdiv. lra.
  Qed.

  Lemma fixed_ok bits given :
    keeps n m k rows (FFixed bits given) = true -> kept n m P (meant (FFixed bits given)).
  Proof.
    cbn [keeps meant kept]. intros H s o row Hs Ho Hrow. apply andb_prop in H.
    destruct H as [Hb H]. apply Z.leb_le in Hb. rewrite forall_seq in H. specialize (H s Hs).
    cbv beta in H. destruct (nth s given None) as [own|]; [|discriminate].
    injection Hrow as <-. unfold same_row in H. rewrite forall_seq in H. specialize (H o Ho).
    cbv beta in H. apply Z.eqb_eq in H. apply (f_equal IZR) in H. rewrite !mult_IZR in H.
    unfold P, over, entry. fold one. fold one in H. pose proof one_pos' as Hone.
    assert (H2 : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    apply Rmult_eq_reg_r with (IZR (2 ^ bits) * one); [|nra].
    transitivity (IZR (nth o (nth s rows []) 0%Z) * IZR (2 ^ bits)); [field; lra|].
    rewrite H. field. lra.
  Qed.

  Theorem keeps_ok p : keeps n m k rows p = true -> kept n m P (meant p).
  Proof.
    destruct p; [apply ratios_ok | apply lifted_ok | apply approximate_ok | apply adversary_ok |
      apply mean_ok | apply means_ok | apply support_ok | apply fixed_ok].
  Qed.

  Theorem costs_ok g x y : costs n m k rows g x y = true ->
    at_most n m (goal_meant g) P (IZR x / IZR y).
  Proof.
    destruct g as [a prior b loss|b loss|bits w]; unfold costs; cbn [goal_meant at_most]; intros H;
      split_ands.
    - match goal with H : (dot _ _ * y <= _)%Z |- _ => rename H into Hle end.
      match goal with H : shaped n m loss = true |- _ => rename H into Hloss end.
      match goal with H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H; rename H into Hp end.
      apply IZR_le in Hle. rewrite !mult_IZR in Hle. fold one in Hle.
      rewrite (dot_sum prior _ n) in Hle by lia.
      pose proof (scale_pos b ltac:(trivial)) as Hc.
      assert (Ha : 0 < IZR (2 ^ a)) by (apply IZR_lt, pow2_pos; trivial).
      apply (divided _ x y (IZR (2 ^ a) * IZR (2 ^ b) * one)); trivial;
        [rewrite Rmult_assoc; now apply Rmult_lt_0_compat|].
      enough (Heq : sum n (fun s => over a (nth s prior 0%Z) *
        sum m (fun o => over b (entry loss s o) * P s o)) * (IZR (2 ^ a) * IZR (2 ^ b) * one) =
        sum n (fun i => IZR (nth i prior 0%Z) * IZR (nth i (map (fun s =>
          dot (nth s loss []) (nth s rows [])) (seq 0 n)) 0%Z))) by (rewrite Heq; lra).
      rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros s Hs.
      rewrite (nth_map_seq (fun s => dot (nth s loss []) (nth s rows []))) by trivial.
      rewrite (dot_row _ s b ltac:(trivial) (shaped_most n m loss Hloss s)).
      unfold entry. set (X := sum m _). unfold over. field. lra.
    - intros s Hs.
      match goal with H : shaped n m loss = true |- _ => rename H into Hloss end.
      match goal with H : forallb _ (seq 0 n) = true |- _ => rename H into Hall end.
      rewrite forall_seq in Hall. specialize (Hall s Hs). cbv beta in Hall. split_ands.
      apply IZR_le in Hall. rewrite !mult_IZR in Hall. fold one in Hall.
      rewrite (dot_row _ s b ltac:(trivial) (shaped_most n m loss Hloss s)) in Hall.
      apply (divided _ _ y (IZR (2 ^ b) * one)); try assumption; now apply scale_pos.
    - match goal with H : negb _ = true |- _ => apply negb_true_iff, Nat.eqb_neq in H end.
      match goal with H : (- _ * y <= _)%Z |- _ => rename H into Hle end.
      apply IZR_le in Hle. rewrite !mult_IZR, opp_IZR in Hle. fold one in Hle.
      pose proof (guesses_ok bits w ltac:(trivial) ltac:(trivial) ltac:(trivial)) as Hg.
      pose proof (scale_pos bits ltac:(trivial)) as Hc.
      match goal with H : (0 < y)%Z |- _ => assert (0 < IZR y) by now apply IZR_lt end.
      apply (divided _ x y (IZR (2 ^ bits) * one)); trivial. set (X := sum m _) in *. nra.
  Qed.
End Matrix.
