(** Polynomials on a triangle: their slope along a segment, and how fast they can grow. *)

From Coq Require Import Reals List Lia Lra Psatz.
From Optmech Require Import Definitions.
Open Scope R_scope.

Notation coefficients := (nat -> nat -> nat -> R).

Lemma blend_ext d : forall f g a b c,
  (forall i j k, (i + j + k = d)%nat -> f i j k = g i j k) -> blend d f a b c = blend d g a b c.
Proof.
  induction d as [|d IH]; intros f g a b c H; simpl; [now apply H|].
  rewrite (IH (fun i j k => f (S i) j k) (fun i j k => g (S i) j k)),
    (IH (fun i j k => f i (S j) k) (fun i j k => g i (S j) k)),
    (IH (fun i j k => f i j (S k)) (fun i j k => g i j (S k)));
    trivial; intros; apply H; lia.
Qed.

Lemma blend_le d : forall f g a b c, 0 <= a -> 0 <= b -> 0 <= c ->
  (forall i j k, (i + j + k = d)%nat -> f i j k <= g i j k) -> blend d f a b c <= blend d g a b c.
Proof.
  induction d as [|d IH]; intros f g a b c Ha Hb Hc H; simpl; [now apply H|].
  repeat apply Rplus_le_compat; apply Rmult_le_compat_l; trivial; apply IH; trivial;
    intros; apply H; lia.
Qed.

Lemma blend_plus d : forall f g a b c,
  blend d (fun i j k => f i j k + g i j k) a b c = blend d f a b c + blend d g a b c.
Proof.
  induction d as [|d IH]; intros; simpl; trivial.
  rewrite (IH (fun i j k => f (S i) j k)), (IH (fun i j k => f i (S j) k)),
    (IH (fun i j k => f i j (S k))). ring.
Qed.

Lemma blend_scale d : forall x f a b c,
  blend d (fun i j k => x * f i j k) a b c = x * blend d f a b c.
Proof.
  induction d as [|d IH]; intros; simpl; trivial.
  rewrite (IH x (fun i j k => f (S i) j k)), (IH x (fun i j k => f i (S j) k)),
    (IH x (fun i j k => f i j (S k))). ring.
Qed.

Lemma blend_const d : forall x a b c, a + b + c = 1 -> blend d (fun _ _ _ => x) a b c = x.
Proof.
  induction d as [|d IH]; intros x a b c H; simpl; trivial. rewrite IH by trivial.
  replace (a * x + b * x + c * x) with ((a + b + c) * x) by ring. rewrite H. ring.
Qed.

Lemma blend_nonneg d f a b c : 0 <= a -> 0 <= b -> 0 <= c ->
  (forall i j k, (i + j + k = d)%nat -> 0 <= f i j k) -> 0 <= blend d f a b c.
Proof.
  intros Ha Hb Hc H. replace 0 with (0 * blend d f a b c) by ring.
  rewrite <- blend_scale. apply blend_le; trivial. intros i j k Hd.
  specialize (H i j k Hd). lra.
Qed.

(** ** Products with a weight *)
Definition raised0 (g : coefficients) : coefficients := fun i j k => INR i * g (pred i) j k.
Definition raised1 (g : coefficients) : coefficients := fun i j k => INR j * g i (pred j) k.
Definition raised2 (g : coefficients) : coefficients := fun i j k => INR k * g i j (pred k).

Lemma raised0_ok d : forall g a b c,
  blend (S d) (raised0 g) a b c = INR (S d) * (a * blend d g a b c).
Proof.
  induction d as [|d IH]; intros g a b c; [unfold raised0; simpl; ring|].
  change (blend (S (S d)) (raised0 g) a b c) with
    (a * blend (S d) (fun i j k => raised0 g (S i) j k) a b c +
     b * blend (S d) (raised0 (fun i j k => g i (S j) k)) a b c +
     c * blend (S d) (raised0 (fun i j k => g i j (S k))) a b c).
  rewrite (blend_ext (S d) (fun i j k => raised0 g (S i) j k)
    (fun i j k => raised0 (fun i j k => g (S i) j k) i j k + g i j k)).
  2: { intros i j k _. unfold raised0. rewrite S_INR. destruct i; simpl; ring. }
  rewrite blend_plus, !IH, (S_INR (S d)). cbn [blend]. ring.
Qed.

Lemma raised1_ok d : forall g a b c,
  blend (S d) (raised1 g) a b c = INR (S d) * (b * blend d g a b c).
Proof.
  induction d as [|d IH]; intros g a b c; [unfold raised1; simpl; ring|].
  change (blend (S (S d)) (raised1 g) a b c) with
    (a * blend (S d) (raised1 (fun i j k => g (S i) j k)) a b c +
     b * blend (S d) (fun i j k => raised1 g i (S j) k) a b c +
     c * blend (S d) (raised1 (fun i j k => g i j (S k))) a b c).
  rewrite (blend_ext (S d) (fun i j k => raised1 g i (S j) k)
    (fun i j k => raised1 (fun i j k => g i (S j) k) i j k + g i j k)).
  2: { intros i j k _. unfold raised1. rewrite S_INR. destruct j; simpl; ring. }
  rewrite blend_plus, !IH, (S_INR (S d)). cbn [blend]. ring.
Qed.

Lemma raised2_ok d : forall g a b c,
  blend (S d) (raised2 g) a b c = INR (S d) * (c * blend d g a b c).
Proof.
  induction d as [|d IH]; intros g a b c; [unfold raised2; simpl; ring|].
  change (blend (S (S d)) (raised2 g) a b c) with
    (a * blend (S d) (raised2 (fun i j k => g (S i) j k)) a b c +
     b * blend (S d) (raised2 (fun i j k => g i (S j) k)) a b c +
     c * blend (S d) (fun i j k => raised2 g i j (S k)) a b c).
  rewrite (blend_ext (S d) (fun i j k => raised2 g i j (S k))
    (fun i j k => raised2 (fun i j k => g i j (S k)) i j k + g i j k)).
  2: { intros i j k _. unfold raised2. rewrite S_INR. destruct k; simpl; ring. }
  rewrite blend_plus, !IH, (S_INR (S d)). cbn [blend]. ring.
Qed.

(** ** The slope *)
Definition along (u v w : R) (f : coefficients) : coefficients :=
  fun i j k => u * f (S i) j k + v * f i (S j) k + w * f i j (S k).

Lemma linear_slope a u t : derivable_pt_lim (fun t => a + t * u) t u.
Proof.
  assert (H := derivable_pt_lim_plus (fct_cte a) (mult_fct id (fct_cte u)) t 0 (1 * u + t * 0)
    (derivable_pt_lim_const a t)
    (derivable_pt_lim_mult id (fct_cte u) t 1 0 (derivable_pt_lim_id t)
      (derivable_pt_lim_const u t))).
  replace (0 + (1 * u + t * 0)) with u in H by ring. exact H.
Qed.

Section Slope.
  Variables a b c u v w : R.

  Lemma blend_slope d : forall f t,
    derivable_pt_lim (fun t => blend (S d) f (a + t * u) (b + t * v) (c + t * w)) t
      (INR (S d) * blend d (along u v w f) (a + t * u) (b + t * v) (c + t * w)).
  Proof.
    assert (Hproduct : forall (A B C : R -> R) t x y z,
      derivable_pt_lim A t x -> derivable_pt_lim B t y -> derivable_pt_lim C t z ->
      derivable_pt_lim (fun t => (a + t * u) * A t + (b + t * v) * B t + (c + t * w) * C t) t
        (u * A t + (a + t * u) * x + (v * B t + (b + t * v) * y) + (w * C t + (c + t * w) * z))).
    { intros A B C t x y z HA HB HC.
      exact (derivable_pt_lim_plus _ _ _ _ _
        (derivable_pt_lim_plus _ _ _ _ _
          (derivable_pt_lim_mult (fun t => a + t * u) A _ _ _ (linear_slope a u t) HA)
          (derivable_pt_lim_mult (fun t => b + t * v) B _ _ _ (linear_slope b v t) HB))
        (derivable_pt_lim_mult (fun t => c + t * w) C _ _ _ (linear_slope c w t) HC)). }
    induction d as [|d IH]; intros f t.
    - assert (H := Hproduct (fct_cte (f 1 0 0)%nat) (fct_cte (f 0 1 0)%nat) (fct_cte (f 0 0 1)%nat)
        t 0 0 0 (derivable_pt_lim_const _ _) (derivable_pt_lim_const _ _)
        (derivable_pt_lim_const _ _)).
      match type of H with derivable_pt_lim _ _ ?x =>
        replace x with (INR 1 * blend 0 (along u v w f) (a + t * u) (b + t * v) (c + t * w)) in H
          by (unfold along, fct_cte; simpl; ring) end.
      exact H.
    - assert (H := Hproduct _ _ _ t _ _ _
        (IH (fun i j k => f (S i) j k) t) (IH (fun i j k => f i (S j) k) t)
        (IH (fun i j k => f i j (S k)) t)).
      cbv beta in H.
      match type of H with derivable_pt_lim _ _ ?x =>
        replace x with (INR (S (S d)) *
          blend (S d) (along u v w f) (a + t * u) (b + t * v) (c + t * w)) in H end.
      + exact H.
      + set (x := a + t * u). set (y := b + t * v). set (z := c + t * w).
        rewrite (S_INR (S d)), Rmult_plus_distr_r, Rmult_1_l.
        change (blend (S d) (along u v w f) x y z) with
          (x * blend d (along u v w (fun i j k => f (S i) j k)) x y z +
           y * blend d (along u v w (fun i j k => f i (S j) k)) x y z +
           z * blend d (along u v w (fun i j k => f i j (S k))) x y z) at 1.
        assert (Hlin : blend (S d) (along u v w f) x y z =
          u * blend (S d) (fun i j k => f (S i) j k) x y z +
          v * blend (S d) (fun i j k => f i (S j) k) x y z +
          w * blend (S d) (fun i j k => f i j (S k)) x y z).
        { unfold along. rewrite !blend_plus.
          rewrite (blend_scale (S d) u (fun i j k => f (S i) j k)),
            (blend_scale (S d) v (fun i j k => f i (S j) k)),
            (blend_scale (S d) w (fun i j k => f i j (S k))). ring. }
        rewrite Hlin. ring.
  Qed.

  (** The coefficients of the slope, in degree S d. *)
  Definition slope (f : coefficients) : coefficients := fun i j k =>
    raised0 (along u v w f) i j k + raised1 (along u v w f) i j k + raised2 (along u v w f) i j k.

  Lemma slope_ok d f x y z : x + y + z = 1 ->
    blend (S d) (slope f) x y z = INR (S d) * blend d (along u v w f) x y z.
  Proof.
    intros H. unfold slope. rewrite !blend_plus.
    rewrite (raised0_ok d), (raised1_ok d), (raised2_ok d).
    replace (INR (S d) * blend d (along u v w f) x y z) with
      (INR (S d) * ((x + y + z) * blend d (along u v w f) x y z)) by (rewrite H; ring). ring.
  Qed.

  (** Where the slope's coefficients are at most r times those of the polynomial, it grows by e^r
      at most. *)
  Lemma growth d f r : a + b + c = 1 -> u + v + w = 0 ->
    0 <= a -> 0 <= b -> 0 <= c -> 0 <= a + u -> 0 <= b + v -> 0 <= c + w ->
    (forall i j k, (i + j + k = S d)%nat -> slope f i j k <= r * f i j k) ->
    blend (S d) f (a + u) (b + v) (c + w) <= exp r * blend (S d) f a b c.
  Proof.
    intros Hs Hz Ha Hb Hc Ha' Hb' Hc' Hle.
    set (p := fun t => blend (S d) f (a + t * u) (b + t * v) (c + t * w)).
    set (p' := fun t => INR (S d) * blend d (along u v w f) (a + t * u) (b + t * v) (c + t * w)).
    set (e := fun t => exp (0 + t * (- r))).
    assert (He : forall t, derivable_pt_lim e t (exp (0 + t * (- r)) * (- r))).
    { intros t. exact (derivable_pt_lim_comp (fun t => 0 + t * (- r)) exp t (- r) _
        (linear_slope 0 (- r) t) (derivable_pt_lim_exp _)). }
    destruct (MVT_cor2 (mult_fct p e) (fun t => p' t * e t + p t * (exp (0 + t * (- r)) * (- r))) 0 1)
      as (t & Heq & Ht); [lra| |].
    { intros t _. apply derivable_pt_lim_mult; [apply blend_slope|apply He]. }
    assert (Hslope : p' t <= r * p t).
    { unfold p', p. rewrite <- slope_ok by (replace (a + t * u + (b + t * v) + (c + t * w)) with
        ((a + b + c) + t * (u + v + w)) by ring; rewrite Hs, Hz; ring).
      rewrite <- (blend_scale (S d) r f). apply blend_le; trivial; nra. }
    assert (Hpos : 0 < e t) by apply exp_pos.
    assert (Hdrop : mult_fct p e 1 <= mult_fct p e 0).
    { unfold e in *. nra. }
    unfold mult_fct, p, e in Hdrop.
    replace (a + 1 * u) with (a + u) in Hdrop by ring.
    replace (b + 1 * v) with (b + v) in Hdrop by ring.
    replace (c + 1 * w) with (c + w) in Hdrop by ring.
    rewrite !Rmult_0_l, !Rplus_0_r, exp_0, Rmult_1_r, Rplus_0_l, Rmult_1_l, exp_Ropp in Hdrop.
    assert (Hr : 0 < exp r) by apply exp_pos.
    apply (Rmult_le_compat_l (exp r)) in Hdrop; [|lra].
    replace (exp r * (blend (S d) f (a + u) (b + v) (c + w) * / exp r)) with
      (blend (S d) f (a + u) (b + v) (c + w)) in Hdrop by (field; lra).
    exact Hdrop.
  Qed.
End Slope.

(** ** On an edge *)
Fixpoint blend2 (d : nat) (f : nat -> nat -> R) (a b : R) : R :=
  match d with
  | O => f O O
  | S e => a * blend2 e (fun i j => f (S i) j) a b + b * blend2 e (fun i j => f i (S j)) a b
  end.

Lemma blend2_ext d : forall f g a b,
  (forall i j, (i + j = d)%nat -> f i j = g i j) -> blend2 d f a b = blend2 d g a b.
Proof.
  induction d as [|d IH]; intros f g a b H; simpl; [now apply H|].
  rewrite (IH (fun i j => f (S i) j) (fun i j => g (S i) j)),
    (IH (fun i j => f i (S j)) (fun i j => g i (S j))); trivial; intros; apply H; lia.
Qed.

Lemma blend2_swap d : forall f a b, blend2 d f a b = blend2 d (fun i j => f j i) b a.
Proof.
  induction d as [|d IH]; intros f a b; simpl; trivial.
  rewrite (IH (fun i j => f (S i) j)), (IH (fun i j => f i (S j))). ring.
Qed.

Lemma edge01 d : forall f a b, blend d f a b 0 = blend2 d (fun i j => f i j O) a b.
Proof.
  induction d as [|d IH]; intros f a b; simpl; trivial.
  rewrite (IH (fun i j k => f (S i) j k)), (IH (fun i j k => f i (S j) k)). ring.
Qed.

Lemma edge12 d : forall f b c, blend d f 0 b c = blend2 d (fun i j => f O i j) b c.
Proof.
  induction d as [|d IH]; intros f b c; simpl; trivial.
  rewrite (IH (fun i j k => f i (S j) k)), (IH (fun i j k => f i j (S k))). ring.
Qed.

Lemma edge20 d : forall f a c, blend d f a 0 c = blend2 d (fun i j => f j O i) c a.
Proof.
  induction d as [|d IH]; intros f a c; simpl; trivial.
  rewrite (IH (fun i j k => f (S i) j k)), (IH (fun i j k => f i j (S k))). ring.
Qed.
