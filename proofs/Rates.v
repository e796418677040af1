(** e^{rate · distance}, bounded and compared by arithmetic on whole numbers. *)

From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Optmech Require Import Definitions File Exponential.
Import ListNotations.
Open Scope R_scope.

(** An exponent p / q, or p / q times a logarithm. *)
Record exponent := { top : Z; bottom : Z; of_log : option logarithm }.

Definition reduced (p q : Z) : Z * Z :=
  let g := Z.gcd p q in
  let a := (p / g)%Z in
  let b := (q / g)%Z in
  if ((0 <? b) && (a * q =? p * b))%Z then (a, b) else (p, q).

Definition exponent_of (r : rate) (bits d : Z) : exponent :=
  let '(p, q) := reduced (num r * d) (den r * 2 ^ bits) in
  {| top := p; bottom := q; of_log := log r |}.

Definition exponent_value (e : exponent) : R :=
  IZR (top e) / IZR (bottom e) *
  match of_log e with None => 1 | Some l => ln (IZR (log_num l) / IZR (log_den l)) end.

Definition fine (e : exponent) : bool := ((0 <=? top e) && (0 <? bottom e))%Z.

(** Are the two bounds of the logarithm what they say? *)
Definition hints_ok (l : logarithm) : bool :=
  ((0 <? log_num l) && (0 <? log_den l) && (log_den l <=? log_num l) &&
   (0 <=? log_low l) && (0 <=? log_high l) && (0 <=? log_bits l) &&
   match exp_high (log_bits l + 64) (log_low l) (2 ^ log_bits l) with
   | None => false
   | Some F => F * log_den l <=? log_num l * 2 ^ (log_bits l + 64)
   end &&
   (log_num l * 2 ^ (log_bits l + 64) <=?
    exp_low (log_bits l + 64) (log_high l) (2 ^ log_bits l) * log_den l))%Z.

Definition rate_ok (r : rate) : bool :=
  ((0 <=? num r) && (0 <? den r) && match log r with None => true | Some l => hints_ok l end)%Z.

(** Powers are found exactly up to this exponent; e^1100 is more than any ratio in a file. *)
Definition most_power : Z := 2048.
Definition most_root : Z := 64.
Definition enough : Z := 1100.

Definition capped (p q : Z) : Z * Z := if (enough * q <? p)%Z then (enough, 1%Z) else (p, q).

(** A fraction that is at most e^{exponent}. *)
Definition low (bits : Z) (e : exponent) : Z * Z :=
  match of_log e with
  | None => let '(p, q) := capped (top e) (bottom e) in (exp_low bits p q, 2 ^ bits)%Z
  | Some l =>
      if ((bottom e =? 1) && (top e <=? most_power))%Z
      then (log_num l ^ top e, log_den l ^ top e)%Z
      else let '(p, q) := capped (top e * log_low l) (bottom e * 2 ^ log_bits l) in
           (exp_low bits p q, 2 ^ bits)%Z
  end.

(** A number that, over 2^bits, is at least e^{exponent}; none where that is large. *)
Definition high (bits : Z) (e : exponent) : option Z :=
  match of_log e with
  | None => if (enough * bottom e <? top e)%Z then None else exp_high bits (top e) (bottom e)
  | Some l =>
      if ((bottom e =? 1) && (top e <=? most_power))%Z
      then Some (up (log_num l ^ top e * 2 ^ bits) (log_den l ^ top e))
      else let p := (top e * log_high l)%Z in
           let q := (bottom e * 2 ^ log_bits l)%Z in
           if (enough * q <? p)%Z then None else exp_high bits p q
  end.

(** x <= e^{exponent} y, by whole powers. *)
Definition by_powers (e : exponent) (x y : Z) : bool :=
  match of_log e with
  | None => false
  | Some l =>
      ((bottom e <=? most_root) && (top e <=? most_power) &&
       (x ^ bottom e * log_den l ^ top e <=? log_num l ^ top e * y ^ bottom e))%Z
  end.

Definition below (fraction : Z * Z) (x y : Z) : bool :=
  (x * snd fraction <=? y * fst fraction)%Z.

(** x <= e^{exponent} y: [quick] is [low 128 e], found once for many x and y. *)
Definition at_most_power (quick : Z * Z) (e : exponent) (x y : Z) : bool :=
  below quick x y || by_powers e x y ||
  below (low 256 e) x y || below (low 1024 e) x y || below (low 4096 e) x y.

(** ** Proofs *)

Lemma IZR_pow a k : (0 <= k)%Z -> IZR (a ^ k) = IZR a ^ Z.to_nat k.
Proof.
  intros. rewrite <- (Z2Nat.id k) at 1 by trivial. now rewrite pow_IZR.
Qed.

Lemma exp_pow x k : exp x ^ k = exp (INR k * x).
Proof.
  induction k as [|k IH]; [simpl; now rewrite Rmult_0_l, exp_0|].
  rewrite S_INR. simpl pow. rewrite IH, <- exp_plus. f_equal. ring.
Qed.

Lemma pow_less a b k : 0 <= a < b -> (0 < k)%nat -> a ^ k < b ^ k.
Proof.
  intros Hab. induction k as [|k IH]; [lia|]. intros _. simpl.
  destruct k as [|k]; [simpl; lra|].
  assert (a ^ S k < b ^ S k) by (apply IH; lia).
  assert (0 <= a ^ S k) by (apply pow_le; lra).
  assert (0 < b ^ S k) by (apply pow_lt; lra). nra.
Qed.

Lemma bool_and a b : a && b = true -> a = true /\ b = true.
Proof. apply andb_prop. Qed.

Ltac split_ands :=
  repeat match goal with
  | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
  end;
  repeat match goal with
  | H : (_ <=? _)%Z = true |- _ => apply Z.leb_le in H
  | H : (_ <? _)%Z = true |- _ => apply Z.ltb_lt in H
  | H : (_ =? _)%Z = true |- _ => apply Z.eqb_eq in H
  end.

Section Log.
  Variable l : logarithm.
  Hypothesis Hl : hints_ok l = true.
  Let a := IZR (log_num l).
  Let b := IZR (log_den l).

  Lemma log_positive : 0 < a /\ 0 < b /\ 0 < a / b.
  Proof.
    unfold hints_ok in Hl. split_ands.
    assert (0 < a) by now apply IZR_lt. assert (0 < b) by now apply IZR_lt.
    repeat split; trivial. now apply Rdiv_lt_0_compat.
  Qed.

  Lemma exp_log : exp (ln (a / b)) = a / b.
  Proof. apply exp_ln. apply log_positive. Qed.

  Lemma log_low_ok : IZR (log_low l) / IZR (2 ^ log_bits l) <= ln (a / b).
  Proof.
    destruct log_positive as (Ha & Hb & Hab).
    unfold hints_ok in Hl. destruct (exp_high _ _ _) as [F|] eqn:HF; split_ands; [|discriminate].
    assert (0 < 2 ^ log_bits l)%Z by now apply pow2_pos.
    apply exp_high_ok in HF; trivial; try lia.
    rewrite <- (ln_exp (IZR (log_low l) / IZR (2 ^ log_bits l))).
    assert (H64 : (0 < 2 ^ (log_bits l + 64))%Z) by (apply pow2_pos; lia).
    apply IZR_lt in H64.
    match goal with H : (F * _ <= _)%Z |- _ => apply IZR_le in H; rewrite !mult_IZR in H;
      fold a b in H end.
    assert (Hle : exp (IZR (log_low l) / IZR (2 ^ log_bits l)) <= a / b).
    { apply Rmult_le_reg_r with (IZR (2 ^ (log_bits l + 64)) * b); [nra|].
      unfold Rdiv at 2. replace (a * / b * (IZR (2 ^ (log_bits l + 64)) * b)) with
        (a * IZR (2 ^ (log_bits l + 64))) by (field; lra). nra. }
    destruct Hle as [Hlt|Heq]; [left|right; now rewrite Heq].
    apply ln_increasing; trivial. apply exp_pos.
  Qed.

  Lemma log_high_ok : ln (a / b) <= IZR (log_high l) / IZR (2 ^ log_bits l).
  Proof.
    destruct log_positive as (Ha & Hb & Hab).
    unfold hints_ok in Hl. split_ands.
    assert (0 < 2 ^ log_bits l)%Z by now apply pow2_pos.
    assert (HF := exp_low_ok (log_bits l + 64) (log_high l) (2 ^ log_bits l)
      ltac:(lia) ltac:(lia) ltac:(lia)).
    rewrite <- (ln_exp (IZR (log_high l) / IZR (2 ^ log_bits l))).
    set (F := exp_low _ _ _) in *.
    assert (H64 : (0 < 2 ^ (log_bits l + 64))%Z) by (apply pow2_pos; lia).
    apply IZR_lt in H64.
    match goal with H : (_ <= F * _)%Z |- _ => apply IZR_le in H; rewrite !mult_IZR in H;
      fold a b in H end.
    assert (Hle : a / b <= exp (IZR (log_high l) / IZR (2 ^ log_bits l))).
    { apply Rmult_le_reg_r with (IZR (2 ^ (log_bits l + 64)) * b); [nra|].
      unfold Rdiv at 1. replace (a * / b * (IZR (2 ^ (log_bits l + 64)) * b)) with
        (a * IZR (2 ^ (log_bits l + 64))) by (field; lra). nra. }
    destruct Hle as [Hlt|Heq]; [left|right; now rewrite Heq].
    now apply ln_increasing.
  Qed.

  Lemma power_of_log k : (0 <= k)%Z ->
    exp (IZR k * ln (a / b)) = IZR (log_num l ^ k) / IZR (log_den l ^ k).
  Proof.
    intros Hk. destruct log_positive as (Ha & Hb & Hab).
    rewrite !IZR_pow by trivial. fold a b.
    rewrite <- (Z2Nat.id k) at 1 by trivial. rewrite <- INR_IZR_INZ, <- exp_pow, exp_log.
    unfold Rdiv. rewrite Rpow_mult_distr, pow_inv. reflexivity.
  Qed.
End Log.

Definition exponent_ok (e : exponent) : Prop :=
  fine e = true /\ match of_log e with None => True | Some l => hints_ok l = true end.

Lemma frac_le p q p' q' : (0 < q)%Z -> (0 < q')%Z -> (p * q' <= p' * q)%Z ->
  IZR p / IZR q <= IZR p' / IZR q'.
Proof.
  intros H1 H2 H. apply IZR_lt in H1, H2. apply IZR_le in H. rewrite !mult_IZR in H.
  apply Rmult_le_reg_r with (IZR q * IZR q'); [nra|].
  replace (IZR p / IZR q * (IZR q * IZR q')) with (IZR p * IZR q') by (field; lra).
  replace (IZR p' / IZR q' * (IZR q * IZR q')) with (IZR p' * IZR q) by (field; lra). lra.
Qed.

Lemma capped_ok p q p' q' : (0 <= p)%Z -> (0 < q)%Z -> capped p q = (p', q') ->
  (0 <= p')%Z /\ (0 < q')%Z /\ IZR p' / IZR q' <= IZR p / IZR q.
Proof.
  unfold capped. intros Hp Hq. destruct (_ <? p)%Z eqn:Hc; intros [= <- <-].
  - apply Z.ltb_lt in Hc. unfold enough in *. repeat split; try lia.
    apply frac_le; lia.
  - repeat split; trivial; lra.
Qed.

Lemma low_ok bits e : (0 <= bits)%Z -> exponent_ok e ->
  let '(F, D) := low bits e in (0 < D)%Z /\ IZR F / IZR D <= exp (exponent_value e).
Proof.
  intros Hbits [Hf Hl]. unfold fine in Hf. split_ands. unfold low, exponent_value.
  assert (H2 : (0 < 2 ^ bits)%Z) by now apply pow2_pos.
  assert (Hexp : forall p q x, (0 <= p)%Z -> (0 < q)%Z -> IZR p / IZR q <= x ->
    (0 < 2 ^ bits)%Z /\ IZR (exp_low bits p q) / IZR (2 ^ bits) <= exp x).
  { intros p q x Hp Hq Hx. split; trivial. apply IZR_lt in H2.
    apply Rmult_le_reg_r with (IZR (2 ^ bits)); trivial.
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    eapply Rle_trans; [now apply exp_low_ok|].
    apply Rmult_le_compat_r; [lra|]. now apply exp_mono. }
  destruct (of_log e) as [l|].
  - destruct (_ && _) eqn:Hw.
    + split_ands. rewrite H1. destruct (log_positive l Hl) as (Ha & Hb & _).
      split; [apply Z.pow_pos_nonneg; trivial; now apply lt_IZR|].
      rewrite <- power_of_log by trivial. right. f_equal. unfold Rdiv. rewrite Rinv_1. ring.
    + destruct (capped _ _) as [p q] eqn:Hc.
      assert (Hlow := log_low_ok l Hl). unfold hints_ok in Hl. split_ands.
      assert (0 < 2 ^ log_bits l)%Z by now apply pow2_pos.
      apply capped_ok in Hc; [|nia|nia]. destruct Hc as (Hp & Hq & Hle).
      apply Hexp; trivial. eapply Rle_trans; [exact Hle|]. rewrite !mult_IZR.
      assert (0 < IZR (bottom e)) by now apply IZR_lt.
      assert (0 <= IZR (top e)) by now apply IZR_le.
      assert (0 < IZR (2 ^ log_bits l)) by now apply IZR_lt.
      replace (IZR (top e) * IZR (log_low l) / (IZR (bottom e) * IZR (2 ^ log_bits l)))
        with (IZR (top e) / IZR (bottom e) * (IZR (log_low l) / IZR (2 ^ log_bits l)))
        by (field; lra).
      apply Rmult_le_compat_l; trivial. unfold Rdiv. apply Rmult_le_pos; trivial.
      left. now apply Rinv_0_lt_compat.
  - destruct (capped _ _) as [p q] eqn:Hc.
    apply capped_ok in Hc; trivial. destruct Hc as (Hp & Hq & Hle).
    apply Hexp; trivial. lra.
Qed.

Lemma high_ok bits e F : (0 <= bits)%Z -> exponent_ok e -> high bits e = Some F ->
  exp (exponent_value e) * IZR (2 ^ bits) <= IZR F.
Proof.
  intros Hbits [Hf Hl]. unfold fine in Hf. split_ands. unfold high, exponent_value.
  assert (H2 : (0 < 2 ^ bits)%Z) by now apply pow2_pos.
  assert (Hexp : forall p q x, (0 <= p)%Z -> (0 < q)%Z -> x <= IZR p / IZR q ->
    exp_high bits p q = Some F -> exp x * IZR (2 ^ bits) <= IZR F).
  { intros p q x Hp Hq Hx HF. apply IZR_lt in H2.
    eapply Rle_trans; [|eapply exp_high_ok; [exact Hbits|exact Hp|exact Hq|exact HF]].
    apply Rmult_le_compat_r; [lra|]. now apply exp_mono. }
  destruct (of_log e) as [l|].
  - destruct (_ && _) eqn:Hw.
    + split_ands. intros [= <-]. destruct (log_positive l Hl) as (Ha & Hb & _).
      assert (Hd : (0 < log_den l ^ top e)%Z)
        by (apply Z.pow_pos_nonneg; trivial; now apply lt_IZR).
      eapply Rle_trans; [|now apply up_ge]. rewrite mult_IZR.
      rewrite H1. replace (IZR (top e) / 1) with (IZR (top e)) by field.
      rewrite power_of_log by trivial. right. apply IZR_lt in Hd. field. lra.
    + destruct (_ <? _)%Z; [discriminate|].
      assert (Hhigh := log_high_ok l Hl). unfold hints_ok in Hl. split_ands.
      assert (0 < 2 ^ log_bits l)%Z by now apply pow2_pos.
      apply Hexp; [nia|nia|]. rewrite !mult_IZR.
      assert (0 < IZR (bottom e)) by now apply IZR_lt.
      assert (0 <= IZR (top e)) by now apply IZR_le.
      assert (0 < IZR (2 ^ log_bits l)) by now apply IZR_lt.
      replace (IZR (top e) * IZR (log_high l) / (IZR (bottom e) * IZR (2 ^ log_bits l)))
        with (IZR (top e) / IZR (bottom e) * (IZR (log_high l) / IZR (2 ^ log_bits l)))
        by (field; lra).
      apply Rmult_le_compat_l; trivial. unfold Rdiv. apply Rmult_le_pos; trivial.
      left. now apply Rinv_0_lt_compat.
  - destruct (_ <? _)%Z; [discriminate|]. apply Hexp; trivial. lra.
Qed.

Lemma below_ok f x y v : (0 < snd f)%Z -> (0 <= y)%Z -> IZR (fst f) / IZR (snd f) <= v ->
  below f x y = true -> IZR x <= v * IZR y.
Proof.
  unfold below. intros Hd Hy Hv H. split_ands. apply IZR_le in H. rewrite !mult_IZR in H.
  apply IZR_lt in Hd. apply IZR_le in Hy.
  apply Rle_trans with (IZR (fst f) / IZR (snd f) * IZR y).
  - apply Rmult_le_reg_r with (IZR (snd f)); trivial.
    replace (IZR (fst f) / IZR (snd f) * IZR y * IZR (snd f)) with (IZR y * IZR (fst f))
      by (field; lra). exact H.
  - now apply Rmult_le_compat_r.
Qed.

Lemma by_powers_ok e x y : exponent_ok e -> (0 <= x)%Z -> (0 <= y)%Z ->
  by_powers e x y = true -> IZR x <= exp (exponent_value e) * IZR y.
Proof.
  intros [Hf Hl] Hx Hy. unfold fine in Hf. split_ands. unfold by_powers, exponent_value.
  destruct (of_log e) as [l|]; [|discriminate]. intros. split_ands.
  destruct (log_positive l Hl) as (Ha & Hb & Hab).
  match goal with H : (_ * _ <= _)%Z |- _ => rename H into Hle end.
  set (E := exp _).
  assert (HE : 0 < E) by apply exp_pos.
  assert (HyR : 0 <= IZR y) by now apply IZR_le. assert (HxR : 0 <= IZR x) by now apply IZR_le.
  apply Rnot_lt_le. intros Hlt.
  assert (Hq : (0 < Z.to_nat (bottom e))%nat) by lia.
  pose proof (pow_less (E * IZR y) (IZR x) _ (conj (Rmult_le_pos _ _ (Rlt_le _ _ HE) HyR) Hlt) Hq)
    as Hpow.
  rewrite Rpow_mult_distr in Hpow. unfold E in Hpow. rewrite exp_pow in Hpow.
  rewrite INR_IZR_INZ, Z2Nat.id in Hpow by lia.
  assert (0 < IZR (bottom e)) by now apply IZR_lt.
  replace (IZR (bottom e) * (IZR (top e) / IZR (bottom e) *
    ln (IZR (log_num l) / IZR (log_den l)))) with
    (IZR (top e) * ln (IZR (log_num l) / IZR (log_den l))) in Hpow by (field; lra).
  rewrite power_of_log in Hpow by trivial.
  apply IZR_le in Hle. rewrite !mult_IZR in Hle.
  rewrite (IZR_pow x), (IZR_pow y) in Hle by lia.
  assert (Hd : (0 < log_den l ^ top e)%Z)
    by (apply Z.pow_pos_nonneg; trivial; now apply lt_IZR).
  apply IZR_lt in Hd.
  apply (Rmult_lt_compat_r _ _ _ Hd) in Hpow.
  replace (IZR (log_num l ^ top e) / IZR (log_den l ^ top e) * IZR y ^ Z.to_nat (bottom e) *
    IZR (log_den l ^ top e)) with
    (IZR (log_num l ^ top e) * IZR y ^ Z.to_nat (bottom e)) in Hpow by (field; lra).
  lra.
Qed.

Lemma at_most_power_ok quick e x y : exponent_ok e -> (0 <= x)%Z -> (0 <= y)%Z ->
  quick = low 128 e -> at_most_power quick e x y = true ->
  IZR x <= exp (exponent_value e) * IZR y.
Proof.
  intros He Hx Hy -> H. unfold at_most_power in H.
  assert (Hlow : forall bits, (0 <= bits)%Z -> below (low bits e) x y = true ->
    IZR x <= exp (exponent_value e) * IZR y).
  { intros bits Hbits. pose proof (low_ok bits e Hbits He) as Hf.
    destruct (low bits e) as [F D]. destruct Hf. now apply below_ok. }
  repeat rewrite orb_true_iff in H.
  destruct H as [[[[H|H]|H]|H]|H]; try (eapply Hlow; [|exact H]; lia).
  now apply by_powers_ok.
Qed.

Lemma exponent_of_ok r bits d : rate_ok r = true -> (0 <= bits)%Z -> (0 <= d)%Z ->
  exponent_ok (exponent_of r bits d) /\ exponent_value (exponent_of r bits d) = value r * over bits d.
Proof.
  unfold rate_ok. intros Hr Hbits Hd. split_ands.
  assert (H2 : (0 < 2 ^ bits)%Z) by now apply pow2_pos.
  unfold exponent_of.
  assert (Hred : let '(p, q) := reduced (num r * d) (den r * 2 ^ bits) in
    (0 <= p)%Z /\ (0 < q)%Z /\
    IZR p / IZR q = IZR (num r * d) / IZR (den r * 2 ^ bits)).
  { unfold reduced. set (P := (num r * d)%Z). set (Q := (den r * 2 ^ bits)%Z).
    assert (0 <= P)%Z by (unfold P; nia). assert (0 < Q)%Z by (unfold Q; nia).
    destruct (_ && _) eqn:Hg; [|repeat split; trivial].
    split_ands. set (p := (P / Z.gcd P Q)%Z) in *. set (q := (Q / Z.gcd P Q)%Z) in *.
    repeat split; trivial; [nia|].
    assert (0 < IZR q) by now apply IZR_lt. assert (0 < IZR Q) by now apply IZR_lt.
    assert (Heq : IZR p * IZR Q = IZR P * IZR q) by (rewrite <- !mult_IZR; now f_equal).
    apply Rmult_eq_reg_r with (IZR q * IZR Q); [|nra].
    replace (IZR p / IZR q * (IZR q * IZR Q)) with (IZR p * IZR Q) by (field; lra).
    replace (IZR P / IZR Q * (IZR q * IZR Q)) with (IZR P * IZR q) by (field; lra). exact Heq. }
  destruct (reduced _ _) as [p q]. destruct Hred as (Hp & Hq & Heq). split.
  - split; [|simpl; destruct (log r); trivial].
    unfold fine. simpl. apply andb_true_intro. split; [now apply Z.leb_le | now apply Z.ltb_lt].
  - unfold exponent_value. simpl top. simpl bottom. simpl of_log. rewrite Heq, !mult_IZR.
    unfold value, over, unit_of.
    assert (0 < IZR (den r)) by now apply IZR_lt. assert (0 < IZR (2 ^ bits)) by now apply IZR_lt.
    destruct (log r); field; lra.
Qed.
