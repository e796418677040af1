(** Sums of real numbers, and the sums over lists of whole numbers that the checker computes. *)

From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Optmech Require Import Definitions File Checker.
Import ListNotations.
Open Scope R_scope.

Lemma sum_ext k f g : (forall i, (i < k)%nat -> f i = g i) -> sum k f = sum k g.
Proof. induction k as [|k IH]; intros H; simpl; trivial. rewrite IH, H; auto. Qed.

Lemma sum_plus k f g : sum k (fun i => f i + g i) = sum k f + sum k g.
Proof. induction k as [|k IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma sum_scale k c f : sum k (fun i => c * f i) = c * sum k f.
Proof. induction k as [|k IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma sum_le k f g : (forall i, (i < k)%nat -> f i <= g i) -> sum k f <= sum k g.
Proof.
  induction k as [|k IH]; intros H; simpl; [lra|].
  apply Rplus_le_compat; [apply IH; auto | auto].
Qed.

Lemma sum_zero k f : (forall i, (i < k)%nat -> f i = 0) -> sum k f = 0.
Proof. induction k as [|k IH]; intros H; simpl; trivial. rewrite IH, H; auto. lra. Qed.

Lemma sum_nonneg k f : (forall i, (i < k)%nat -> 0 <= f i) -> 0 <= sum k f.
Proof. intros H. rewrite <- (sum_zero k (fun _ => 0)); trivial. now apply sum_le. Qed.

Lemma sum_first k f : sum (S k) f = f O + sum k (fun i => f (S i)).
Proof. induction k as [|k IH]; simpl in *; [lra|]. rewrite IH. lra. Qed.

Lemma sum_swap n m f :
  sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl; [now rewrite sum_zero|]. now rewrite IH, <- sum_plus.
Qed.

Lemma sum_one k j c f : (j < k)%nat -> (forall i, (i < k)%nat -> i <> j -> f i = 0) ->
  f j = c -> sum k f = c.
Proof.
  induction k as [|k IH]; intros Hj H Hc; [lia|]. simpl. destruct (Nat.eq_dec j k) as [->|Hne].
  - rewrite Hc, sum_zero; [lra|]. intros i Hi. apply H; lia.
  - rewrite IH; trivial; [|lia|auto]. rewrite (H k); lia || lra || lra.
Qed.

(** The least of some numbers. *)
Lemma least_le k f t : (t < k)%nat -> least k f <= f t.
Proof.
  induction k as [|[|k] IH]; intros Ht; [lia| |].
  - assert (t = O) as -> by lia. simpl. lra.
  - change (Rmin (least (S k) f) (f (S k)) <= f t).
    destruct (Nat.eq_dec t (S k)) as [->|Hne]; [apply Rmin_r|].
    eapply Rle_trans; [apply Rmin_l|]. apply IH. lia.
Qed.

Lemma le_least k f x : (0 < k)%nat -> (forall t, (t < k)%nat -> x <= f t) -> x <= least k f.
Proof.
  induction k as [|[|k] IH]; intros Hk H; [lia|simpl; auto|].
  change (x <= Rmin (least (S k) f) (f (S k))). apply Rmin_glb; auto. apply IH; auto. lia.
Qed.

Lemma least_of_le l i : (i < length l)%nat -> (least_of l <= nth i l 0)%Z.
Proof.
  revert i. induction l as [|x [|y l] IH]; intros i Hi; simpl in Hi; [lia| |].
  - assert (i = O) as -> by lia. simpl. lia.
  - change (least_of (x :: y :: l)) with (Z.min x (least_of (y :: l))).
    destruct i as [|i]; [simpl; lia|].
    specialize (IH i ltac:(simpl; lia)).
    change (nth (S i) (x :: y :: l) 0%Z) with (nth i (y :: l) 0%Z). lia.
Qed.

(** Lists. *)
Lemma dot_sum a : forall b n, (length a <= n)%nat ->
  IZR (dot a b) = sum n (fun i => IZR (nth i a 0%Z) * IZR (nth i b 0%Z)).
Proof.
  induction a as [|x a IH]; intros b n Hn.
  - simpl. symmetry. apply sum_zero. intros [|i] _; simpl; lra.
  - destruct n as [|n]; [simpl in Hn; lia|]. rewrite sum_first. destruct b as [|y b].
    + simpl. rewrite sum_zero; [lra|]. intros [|i] _; simpl; lra.
    + simpl dot. rewrite plus_IZR, mult_IZR. simpl nth at 1 2.
      rewrite (IH b n); trivial. simpl in Hn. lia.
Qed.

Lemma total_sum a : forall n, (length a <= n)%nat ->
  IZR (total a) = sum n (fun i => IZR (nth i a 0%Z)).
Proof.
  induction a as [|x a IH]; intros n Hn.
  - simpl. symmetry. apply sum_zero. now intros [|i] _.
  - destruct n as [|n]; [simpl in Hn; lia|]. rewrite sum_first. simpl total.
    rewrite plus_IZR. change (fold_right Z.add 0%Z a) with (total a).
    rewrite (IH n); trivial. simpl in Hn. lia.
Qed.

Lemma nth_map_seq {A} (f : nat -> A) n i d : (i < n)%nat -> nth i (map f (seq 0 n)) d = f i.
Proof.
  intros. rewrite (nth_indep _ d (f O)) by (now rewrite map_length, seq_length).
  rewrite map_nth, seq_nth; trivial.
Qed.

Lemma sum_of_sum m f : IZR (sum_of m f) = sum m (fun o => IZR (f o)).
Proof.
  unfold sum_of. rewrite (total_sum _ m) by now rewrite map_length, seq_length.
  apply sum_ext. intros i Hi. now rewrite nth_map_seq.
Qed.

Lemma dots_sum u : forall rows n m, (length u <= n)%nat ->
  (forall s, (length (nth s u []) <= m)%nat) ->
  IZR (dots u rows) = sum n (fun s => sum m (fun o => IZR (entry u s o) * IZR (entry rows s o))).
Proof.
  induction u as [|x u IH]; intros rows n m Hn Hm.
  - simpl. symmetry. apply sum_zero. intros s _. apply sum_zero. intros o _.
    unfold entry. destruct s; simpl; destruct o; simpl; lra.
  - destruct n as [|n]; [simpl in Hn; lia|]. rewrite sum_first. destruct rows as [|y rows].
    + assert (Hz : forall s o, entry [] s o = 0%Z) by (intros [|s] [|o]; reflexivity).
      simpl dots. rewrite (sum_zero m), (sum_zero n); [lra| |]; intros s _.
      * apply sum_zero. intros o _. rewrite Hz. lra.
      * rewrite Hz. lra.
    + simpl dots. rewrite plus_IZR, (dot_sum x y m) by apply (Hm O).
      rewrite (IH rows n m); [reflexivity|simpl in Hn; lia|]. intros s. apply (Hm (S s)).
Qed.

Lemma shaped_ok {A} n m (t : list (list A)) : shaped n m t = true ->
  length t = n /\ forall s, (s < n)%nat -> length (nth s t []) = m.
Proof.
  unfold shaped. intros H. apply andb_prop in H. destruct H as [Hn Hm].
  apply Nat.eqb_eq in Hn. split; trivial. intros s Hs.
  rewrite forallb_forall in Hm. apply Nat.eqb_eq, Hm, nth_In. lia.
Qed.

Lemma shaped_most {A} n m (t : list (list A)) : shaped n m t = true ->
  forall s, (length (nth s t []) <= m)%nat.
Proof.
  intros H s. apply shaped_ok in H. destruct H as [Hn Hm].
  destruct (Nat.lt_ge_cases s n) as [Hs|Hs]; [rewrite Hm; lia|].
  rewrite nth_overflow by lia. simpl. lia.
Qed.

Lemma nonnegative_ok a i : nonnegative a = true -> (0 <= nth i a 0)%Z.
Proof.
  unfold nonnegative. rewrite forallb_forall. intros H.
  destruct (Nat.lt_ge_cases i (length a)) as [Hi|Hi]; [|rewrite nth_overflow; lia].
  apply Z.leb_le, H, nth_In. lia.
Qed.

Lemma forall_seq n f : forallb f (seq 0 n) = true <-> forall i, (i < n)%nat -> f i = true.
Proof.
  rewrite forallb_forall. split; intros H i Hi; apply H; [|apply in_seq in Hi; lia].
  apply in_seq. lia.
Qed.

Lemma plus_scaled_nth w : forall row sums o, length row = length sums ->
  nth o (plus_scaled w row sums) 0%Z = (w * nth o row 0 + nth o sums 0)%Z.
Proof.
  induction row as [|x row IH]; intros [|y sums] o Hl; simpl in Hl; try lia.
  - simpl. destruct o; lia.
  - destruct o as [|o]; simpl; trivial. apply IH. lia.
Qed.

Lemma plus_scaled_length w row sums : length row = length sums ->
  length (plus_scaled w row sums) = length sums.
Proof.
  revert sums. induction row as [|x row IH]; intros [|y sums] Hl; simpl in *; try lia.
  rewrite IH; lia.
Qed.

Lemma mixed_length m weights : forall rows,
  (forall s, (s < length rows)%nat -> length (nth s rows []) = m) ->
  length (mixed m weights rows) = m.
Proof.
  induction weights as [|w weights IH]; intros rows H; simpl; [apply repeat_length|].
  destruct rows as [|row rows]; [apply repeat_length|].
  assert (Hr : length (mixed m weights rows) = m).
  { apply IH. intros s Hs. apply (H (S s)). simpl. lia. }
  destruct (w =? 0)%Z; trivial. rewrite plus_scaled_length; trivial.
  rewrite Hr. apply (H O). simpl. lia.
Qed.

Lemma mixed_nth m weights : forall rows n o, (length weights <= n)%nat ->
  (forall s, (s < length rows)%nat -> length (nth s rows []) = m) ->
  IZR (nth o (mixed m weights rows) 0%Z) =
  sum n (fun s => IZR (nth s weights 0%Z) * IZR (entry rows s o)).
Proof.
  assert (Hz : forall o, nth o (repeat 0%Z m) 0%Z = 0%Z) by (intros; apply nth_repeat).
  induction weights as [|w weights IH]; intros rows n o Hn H; simpl.
  - rewrite Hz. symmetry. apply sum_zero. intros [|s] _; simpl; lra.
  - destruct n as [|n]; [simpl in Hn; lia|].
    destruct rows as [|row rows].
    + rewrite Hz. symmetry. apply sum_zero. intros s _.
      unfold entry. destruct s; destruct o; simpl; lra.
    + rewrite sum_first.
      assert (H' : forall s, (s < length rows)%nat -> length (nth s rows []) = m).
      { intros s Hs. apply (H (S s)). simpl. lia. }
      assert (IH' := IH rows n o ltac:(simpl in Hn; lia) H').
      unfold entry at 1. change (nth 0 (row :: rows) []) with row. simpl nth at 2.
      destruct (Z.eqb_spec w 0) as [->|Hw].
      * rewrite IH'. rewrite Rmult_0_l, Rplus_0_l. reflexivity.
      * rewrite plus_scaled_nth, plus_IZR, mult_IZR, IH'; [reflexivity|].
        rewrite mixed_length by trivial. apply (H O). simpl. lia.
Qed.

(** Terms of inequalities. *)
Definition value_of_terms (Q : nat -> nat -> R) (terms : list term_of) : R :=
  fold_right (fun u acc => let '(s, o, v) := u in IZR v * Q s o + acc) 0 terms.

Lemma spread_value Q v o : forall weights from rest n, (length weights <= n)%nat ->
  value_of_terms Q (spread from o v weights rest) =
  IZR v * sum n (fun s => IZR (nth s weights 0%Z) * Q (from + s)%nat o) + value_of_terms Q rest.
Proof.
  induction weights as [|w weights IH]; intros from rest n Hn.
  - simpl. rewrite sum_zero; [lra|]. intros [|s] _; simpl; lra.
  - destruct n as [|n]; [simpl in Hn; lia|]. cbn [spread].
    rewrite sum_first. cbn [nth]. rewrite Nat.add_0_r.
    assert (IH' := IH (S from) rest n ltac:(simpl in Hn; lia)).
    rewrite (sum_ext n (fun i => IZR (nth i weights 0%Z) * Q (from + S i)%nat o)
      (fun i => IZR (nth i weights 0%Z) * Q (S from + i)%nat o))
      by (intros; now rewrite Nat.add_succ_r).
    destruct (Z.eqb_spec w 0) as [->|Hw].
    + rewrite IH'. lra.
    + cbn [value_of_terms fold_right]. change (fold_right _ 0 ?l) with (value_of_terms Q l).
      rewrite IH', mult_IZR. lra.
Qed.

Lemma along_value Q s v : forall u from rest m, (length u <= m)%nat ->
  value_of_terms Q (along s from v u rest) =
  IZR v * sum m (fun o => IZR (nth o u 0%Z) * Q s (from + o)%nat) + value_of_terms Q rest.
Proof.
  induction u as [|x u IH]; intros from rest m Hm.
  - simpl. rewrite sum_zero; [lra|]. intros [|o] _; simpl; lra.
  - destruct m as [|m]; [simpl in Hm; lia|]. cbn [along].
    rewrite sum_first. cbn [nth]. rewrite Nat.add_0_r.
    assert (IH' := IH (S from) rest m ltac:(simpl in Hm; lia)).
    rewrite (sum_ext m (fun i => IZR (nth i u 0%Z) * Q s (from + S i)%nat)
      (fun i => IZR (nth i u 0%Z) * Q s (S from + i)%nat))
      by (intros; now rewrite Nat.add_succ_r).
    destruct (Z.eqb_spec x 0) as [->|Hx].
    + rewrite IH'. lra.
    + cbn [value_of_terms fold_right]. change (fold_right _ 0 ?l) with (value_of_terms Q l).
      rewrite IH', mult_IZR. lra.
Qed.

Lemma along_rows_value Q : forall scales u from n m, length scales = n -> length u = n ->
  (forall s, (length (nth s u []) <= m)%nat) ->
  value_of_terms Q (along_rows from scales u) =
  sum n (fun s => IZR (nth s scales 0%Z) * sum m (fun o => IZR (entry u s o) * Q (from + s)%nat o)).
Proof.
  induction scales as [|v scales IH]; intros u from n m Hn Hu Hm; simpl in Hn; subst n.
  - simpl. reflexivity.
  - destruct u as [|row u]; simpl in Hu; [lia|]. cbn [along_rows].
    rewrite (along_value Q from v row 0 _ m) by apply (Hm O).
    rewrite (IH u (S from) (length scales) m); [|trivial|lia|intros s; apply (Hm (S s))].
    rewrite sum_first. rewrite Nat.add_0_r.
    f_equal. apply sum_ext. intros s _. now rewrite Nat.add_succ_r.
Qed.

Lemma guesses_value Q o scale n : forall w g rest k, length w = k -> length g = k ->
  (forall t, (length (nth t w []) <= n)%nat) ->
  value_of_terms Q (of_guesses o scale w g rest) =
  - IZR scale * sum k (fun t => IZR (nth t g 0%Z) * sum n (fun s => IZR (entry w t s) * Q s o)) +
  value_of_terms Q rest.
Proof.
  induction w as [|costs w IH]; intros g rest k Hk Hg Hn; simpl in Hk; subst k.
  - destruct g; simpl in Hg; [|lia]. simpl. lra.
  - destruct g as [|v g]; simpl in Hg; [lia|]. cbn [of_guesses].
    assert (IH' := IH g rest (length w) eq_refl ltac:(lia) (fun t => Hn (S t))).
    rewrite sum_first. cbn [nth].
    change (fun i => IZR (nth i g 0%Z) *
      sum n (fun s => IZR (entry (costs :: w) (S i) s) * Q s o)) with
      (fun t => IZR (nth t g 0%Z) * sum n (fun s => IZR (entry w t s) * Q s o)).
    destruct (Z.eqb_spec v 0) as [->|Hv]; [rewrite IH'; lra|].
    rewrite (spread_value Q _ o costs 0 _ n) by apply (Hn O).
    change (fun s => IZR (nth s costs 0%Z) * Q (0 + s)%nat o) with
      (fun s => IZR (nth s costs 0%Z) * Q s o).
    change (fun s => IZR (entry (costs :: w) 0 s) * Q s o) with
      (fun s => IZR (nth s costs 0%Z) * Q s o).
    rewrite IH', opp_IZR, mult_IZR. lra.
Qed.

Lemma strategy_value Q scale n w k : length w = k ->
  (forall t, (length (nth t w []) <= n)%nat) ->
  forall g from m, length g = m -> (forall o, (o < m)%nat -> length (nth o g []) = k) ->
  value_of_terms Q (of_strategy from scale w g) =
  - IZR scale * sum m (fun o => sum k (fun t => IZR (entry g o t) *
    sum n (fun s => IZR (entry w t s) * Q s (from + o)%nat))).
Proof.
  intros Hk Hn. induction g as [|own g IH]; intros from m Hm Hg; simpl in Hm; subst m.
  - simpl. lra.
  - cbn [of_strategy]. rewrite (guesses_value Q from scale n w own _ k); trivial.
    2: { apply (Hg O). lia. }
    rewrite (IH (S from) (length g)); trivial.
    2: { intros o Ho. apply (Hg (S o)). lia. }
    rewrite sum_first, Nat.add_0_r.
    change (fun t => IZR (entry (own :: g) 0 t) * sum n (fun s => IZR (entry w t s) * Q s from))
      with (fun t => IZR (nth t own 0%Z) * sum n (fun s => IZR (entry w t s) * Q s from)).
    change (fun o => sum k (fun t => IZR (entry (own :: g) (S o) t) *
      sum n (fun s => IZR (entry w t s) * Q s (from + S o)%nat))) with
      (fun o => sum k (fun t => IZR (entry g o t) *
      sum n (fun s => IZR (entry w t s) * Q s (from + S o)%nat))).
    rewrite (sum_ext (length g)
      (fun i => sum k (fun t => IZR (entry g i t) *
        sum n (fun s => IZR (entry w t s) * Q s (from + S i)%nat)))
      (fun i => sum k (fun t => IZR (entry g i t) *
        sum n (fun s => IZR (entry w t s) * Q s (S from + i)%nat)))).
    2: { intros i _. apply sum_ext. intros t _. now rewrite Nat.add_succ_r. }
    lra.
Qed.
