(** A mechanism on a mesh whose slopes are small is private at all points: a walk along the segment
    between two of them, from triangle to triangle. *)

From Coq Require Import Reals List Lia Lra Psatz.
From Optmech Require Import Definitions Bernstein.
Import ListNotations.
Open Scope R_scope.

(** Twice the area of the triangle a, b, z: positive where z is on the left of the way from a to b. *)
Definition cross (a b z : point) : R :=
  (fst b - fst a) * (snd z - snd a) - (snd b - snd a) * (fst z - fst a).

Definition area (t : triangle) : R := cross (corner0 t) (corner1 t) (corner2 t).

(** An edge runs along its triangle with this on the left; with the rows of its coefficients. *)
Record edge := { from : point; towards : point; rows_along : nat -> nat -> nat }.

Definition edges (t : triangle) : list edge :=
  [ {| from := corner0 t; towards := corner1 t; rows_along := fun i j => row t i j 0%nat |};
    {| from := corner1 t; towards := corner2 t; rows_along := fun i j => row t 0%nat i j |};
    {| from := corner2 t; towards := corner0 t; rows_along := fun i j => row t j 0%nat i |} ].

Definition corners (t : triangle) : list point := [corner0 t; corner1 t; corner2 t].

Definition left_of (e : edge) (z : point) : R := cross (from e) (towards e) z.

Definition inside (t : triangle) (z : point) : Prop := forall e, In e (edges t) -> 0 <= left_of e z.
Definition within (t : triangle) (z : point) : Prop := forall e, In e (edges t) -> 0 < left_of e z.

(** An edge of s has all of t on its right. *)
Definition parted (s t : triangle) : Prop :=
  exists e, In e (edges s) /\ forall v, In v (corners t) -> left_of e v <= 0.

(** The same edge in the other direction, with the same coefficients. *)
Definition matched (d : nat) (e e' : edge) : Prop :=
  from e' = towards e /\ towards e' = from e /\
  forall i j, (i + j = d)%nat -> rows_along e' j i = rows_along e i j.

Definition weight0 t z := cross (corner1 t) (corner2 t) z / area t.
Definition weight1 t z := cross (corner2 t) (corner0 t) z / area t.
Definition weight2 t z := cross (corner0 t) (corner1 t) z / area t.

Ltac three H := cbn [edges corners In] in H; destruct H as [H|[H|[H|[]]]].

Lemma lies_inside t z a b c : 0 < area t -> lies t z a b c ->
  inside t z /\ a = weight0 t z /\ b = weight1 t z /\ c = weight2 t z.
Proof.
  intros Ht (Ha & Hb & Hc & Hs & Hx & Hy).
  assert (E0 : cross (corner1 t) (corner2 t) z = a * area t)
    by (unfold cross, area, cross; rewrite Hx, Hy; replace a with (1 - b - c) by lra; ring).
  assert (E1 : cross (corner2 t) (corner0 t) z = b * area t)
    by (unfold cross, area, cross; rewrite Hx, Hy; replace a with (1 - b - c) by lra; ring).
  assert (E2 : cross (corner0 t) (corner1 t) z = c * area t)
    by (unfold cross, area, cross; rewrite Hx, Hy; replace a with (1 - b - c) by lra; ring).
  split; [|unfold weight0, weight1, weight2; rewrite E0, E1, E2; repeat split; field; lra].
  intros e He. three He; subst e; unfold left_of; cbn [from towards]; rewrite ?E0, ?E1, ?E2; nra.
Qed.

Lemma weights_sum t z : 0 < area t -> weight0 t z + weight1 t z + weight2 t z = 1.
Proof.
  intros Ht. unfold weight0, weight1, weight2.
  replace (cross (corner1 t) (corner2 t) z / area t + cross (corner2 t) (corner0 t) z / area t +
    cross (corner0 t) (corner1 t) z / area t) with (area t / area t); [field; lra|].
  unfold Rdiv. rewrite <- !Rmult_plus_distr_r. f_equal. unfold area, cross. ring.
Qed.

Lemma inside_weights t z : 0 < area t -> inside t z ->
  0 <= weight0 t z /\ 0 <= weight1 t z /\ 0 <= weight2 t z.
Proof.
  intros Ht H. assert (Hi : 0 < / area t) by now apply Rinv_0_lt_compat.
  assert (H01 := H _ (or_introl eq_refl)).
  assert (H12 := H _ (or_intror (or_introl eq_refl))).
  assert (H20 := H _ (or_intror (or_intror (or_introl eq_refl)))).
  unfold left_of in *. cbn [from towards] in *. unfold weight0, weight1, weight2, Rdiv.
  repeat split; apply Rmult_le_pos; lra.
Qed.

Lemma in_weights t z : 0 < area t ->
  fst z = weight0 t z * fst (corner0 t) + weight1 t z * fst (corner1 t) +
    weight2 t z * fst (corner2 t) /\
  snd z = weight0 t z * snd (corner0 t) + weight1 t z * snd (corner1 t) +
    weight2 t z * snd (corner2 t).
Proof.
  intros Ht. unfold weight0, weight1, weight2.
  split; apply Rmult_eq_reg_r with (area t); try lra.
  - replace ((cross (corner1 t) (corner2 t) z / area t * fst (corner0 t) +
      cross (corner2 t) (corner0 t) z / area t * fst (corner1 t) +
      cross (corner0 t) (corner1 t) z / area t * fst (corner2 t)) * area t) with
      (cross (corner1 t) (corner2 t) z * fst (corner0 t) +
      cross (corner2 t) (corner0 t) z * fst (corner1 t) +
      cross (corner0 t) (corner1 t) z * fst (corner2 t)) by (field; lra).
    unfold area, cross. ring.
  - replace ((cross (corner1 t) (corner2 t) z / area t * snd (corner0 t) +
      cross (corner2 t) (corner0 t) z / area t * snd (corner1 t) +
      cross (corner0 t) (corner1 t) z / area t * snd (corner2 t)) * area t) with
      (cross (corner1 t) (corner2 t) z * snd (corner0 t) +
      cross (corner2 t) (corner0 t) z * snd (corner1 t) +
      cross (corner0 t) (corner1 t) z * snd (corner2 t)) by (field; lra).
    unfold area, cross. ring.
Qed.

(** What is on the left at all corners is on the left inside. *)
Lemma left_inside a b t z : 0 < area t -> inside t z ->
  (forall v, In v (corners t) -> 0 <= cross a b v) -> 0 <= cross a b z.
Proof.
  intros Ht Hz H. destruct (inside_weights t z Ht Hz) as (H0 & H1 & H2).
  pose proof (weights_sum t z Ht) as Hs. destruct (in_weights t z Ht) as (Hx & Hy).
  assert (C0 := H _ (or_introl eq_refl)). assert (C1 := H _ (or_intror (or_introl eq_refl))).
  assert (C2 := H _ (or_intror (or_intror (or_introl eq_refl)))).
  set (p := weight0 t z) in *. set (q := weight1 t z) in *. set (r := weight2 t z) in *.
  replace (cross a b z) with (p * cross a b (corner0 t) + q * cross a b (corner1 t) +
    r * cross a b (corner2 t)); [nra|].
  unfold cross. rewrite Hx, Hy. replace p with (1 - q - r) by lra. ring.
Qed.

Lemma right_within a b t z : 0 < area t -> within t z ->
  (forall v, In v (corners t) -> cross a b v <= 0) -> a <> b -> cross a b z < 0.
Proof.
  intros Ht Hz H Hab.
  assert (Hin : inside t z) by (intros e He; left; now apply Hz).
  pose proof (weights_sum t z Ht) as Hs. destruct (in_weights t z Ht) as (Hx & Hy).
  assert (Hi : 0 < / area t) by now apply Rinv_0_lt_compat.
  assert (W : 0 < weight0 t z /\ 0 < weight1 t z /\ 0 < weight2 t z).
  { assert (H01 := Hz _ (or_introl eq_refl)).
    assert (H12 := Hz _ (or_intror (or_introl eq_refl))).
    assert (H20 := Hz _ (or_intror (or_intror (or_introl eq_refl)))).
    unfold left_of in *. cbn [from towards] in *. unfold weight0, weight1, weight2, Rdiv.
    repeat split; apply Rmult_lt_0_compat; trivial. }
  assert (C0 := H _ (or_introl eq_refl)). assert (C1 := H _ (or_intror (or_introl eq_refl))).
  assert (C2 := H _ (or_intror (or_intror (or_introl eq_refl)))).
  set (p := weight0 t z) in *. set (q := weight1 t z) in *. set (r := weight2 t z) in *.
  assert (E : cross a b z = p * cross a b (corner0 t) + q * cross a b (corner1 t) +
    r * cross a b (corner2 t)).
  { unfold cross. rewrite Hx, Hy. replace p with (1 - q - r) by lra. ring. }
  destruct W as (W0 & W1 & W2).
  destruct (Rlt_le_dec (cross a b z) 0) as [|Hge]; trivial. exfalso.
  (* then all corners are on the line, which has no area *)
  assert (Z0 : cross a b (corner0 t) = 0) by nra.
  assert (Z1 : cross a b (corner1 t) = 0) by nra.
  assert (Z2 : cross a b (corner2 t) = 0) by nra.
  destruct a as [ax ay], b as [bx by_]. unfold area, cross in *. cbn [fst snd] in *.
  destruct (corner0 t) as [x0 y0], (corner1 t) as [x1 y1], (corner2 t) as [x2 y2].
  cbn [fst snd] in *.
  assert (U : (bx - ax) * (y1 - y0) = (by_ - ay) * (x1 - x0)) by lra.
  assert (V : (bx - ax) * (y2 - y0) = (by_ - ay) * (x2 - x0)) by lra.
  set (D := (x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0)) in *.
  assert (Dx : (bx - ax) * D = 0).
  { unfold D. replace ((bx - ax) * ((x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0))) with
      ((x1 - x0) * ((bx - ax) * (y2 - y0)) - (x2 - x0) * ((bx - ax) * (y1 - y0))) by ring.
    rewrite U, V. ring. }
  assert (Dy : (by_ - ay) * D = 0).
  { unfold D. replace ((by_ - ay) * ((x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0))) with
      ((y2 - y0) * ((by_ - ay) * (x1 - x0)) - (y1 - y0) * ((by_ - ay) * (x2 - x0))) by ring.
    rewrite <- U, <- V. ring. }
  apply Rmult_integral in Dx. apply Rmult_integral in Dy.
  apply Hab. f_equal; destruct Dx, Dy; lra.
Qed.

(** ** Edges *)

Definition between (e : edge) (u : R) (z : point) : Prop :=
  fst z = (1 - u) * fst (from e) + u * fst (towards e) /\
  snd z = (1 - u) * snd (from e) + u * snd (towards e).

Lemma on_edge t e z : 0 < area t -> In e (edges t) -> inside t z -> left_of e z = 0 ->
  exists u, 0 <= u <= 1 /\ between e u z.
Proof.
  intros Ht He Hz H0. destruct (inside_weights t z Ht Hz) as (P0 & P1 & P2).
  pose proof (weights_sum t z Ht) as Hs. destruct (in_weights t z Ht) as (Hx & Hy).
  three He; subst e; unfold left_of, between in *; cbn [from towards] in *.
  - assert (Z : weight2 t z = 0) by (unfold weight2; rewrite H0; field; lra).
    exists (weight1 t z). rewrite Z in *. replace (1 - weight1 t z) with (weight0 t z) by lra.
    repeat split; lra.
  - assert (Z : weight0 t z = 0) by (unfold weight0; rewrite H0; field; lra).
    exists (weight2 t z). rewrite Z in *. replace (1 - weight2 t z) with (weight1 t z) by lra.
    repeat split; lra.
  - assert (Z : weight1 t z = 0) by (unfold weight1; rewrite H0; field; lra).
    exists (weight0 t z). rewrite Z in *. replace (1 - weight0 t z) with (weight2 t z) by lra.
    repeat split; lra.
Qed.

Lemma other_edges t e e' u z : 0 < area t -> In e (edges t) -> In e' (edges t) ->
  between e u z -> 0 < u < 1 -> e' = e /\ left_of e' z = 0 \/ 0 < left_of e' z.
Proof.
  intros Ht He He' [Hx Hy] Hu. unfold left_of.
  three He; three He'; subst e e'; cbn [from towards] in *;
    (left; split; [reflexivity|unfold cross; rewrite Hx, Hy; ring]) ||
    (right; match goal with |- 0 < ?c =>
      (replace c with ((1 - u) * area t) by (unfold area, cross; rewrite Hx, Hy; ring); nra) ||
      (replace c with (u * area t) by (unfold area, cross; rewrite Hx, Hy; ring); nra) end).
Qed.

Lemma edge_ends t e : 0 < area t -> In e (edges t) -> from e <> towards e.
Proof.
  intros Ht He Heq. three He; subst e; cbn [from towards] in Heq; unfold area, cross in Ht;
    rewrite Heq in Ht; nra.
Qed.

Section Values.
  Variables (d : nat) (P : nat -> nat -> R) (o : nat).

  Definition level (t : triangle) (z : point) : R :=
    blend d (fun i j k => P (row t i j k) o) (weight0 t z) (weight1 t z) (weight2 t z).

  Lemma level_on_edge t e u z : 0 < area t -> In e (edges t) -> between e u z ->
    level t z = blend2 d (fun i j => P (rows_along e i j) o) (1 - u) u.
  Proof.
    intros Ht He [Hx Hy]. unfold level.
    three He; subst e; cbn [from towards rows_along] in *.
    - replace (weight2 t z) with 0 by (unfold weight2, cross; rewrite Hx, Hy; field; lra).
      replace (weight1 t z) with u by (unfold weight1, area, cross in *; rewrite Hx, Hy; field; lra).
      replace (weight0 t z) with (1 - u)
        by (unfold weight0, area, cross in *; rewrite Hx, Hy; field; lra).
      apply edge01.
    - replace (weight0 t z) with 0 by (unfold weight0, cross; rewrite Hx, Hy; field; lra).
      replace (weight2 t z) with u by (unfold weight2, area, cross in *; rewrite Hx, Hy; field; lra).
      replace (weight1 t z) with (1 - u)
        by (unfold weight1, area, cross in *; rewrite Hx, Hy; field; lra).
      apply edge12.
    - replace (weight1 t z) with 0 by (unfold weight1, cross; rewrite Hx, Hy; field; lra).
      replace (weight0 t z) with u by (unfold weight0, area, cross in *; rewrite Hx, Hy; field; lra).
      replace (weight2 t z) with (1 - u)
        by (unfold weight2, area, cross in *; rewrite Hx, Hy; field; lra).
      apply edge20.
  Qed.

  Lemma level_matched t e t' e' u z : 0 < area t -> 0 < area t' ->
    In e (edges t) -> In e' (edges t') -> matched d e e' -> between e u z ->
    level t z = level t' z /\ between e' (1 - u) z.
  Proof.
    intros Ht Ht' He He' (Hf & Hw & Hr) Hu.
    assert (Hu' : between e' (1 - u) z).
    { destruct Hu as [Hx Hy]. unfold between. rewrite Hf, Hw, Hx, Hy. split; ring. }
    split; trivial.
    rewrite (level_on_edge t e u z), (level_on_edge t' e' (1 - u) z) by trivial.
    replace (1 - (1 - u)) with u by ring. rewrite blend2_swap. apply blend2_ext.
    intros i j Hij. rewrite Hr by lia. reflexivity.
  Qed.
End Values.

(** ** Growth inside a triangle *)

(** The rises of the coefficients along both edges from corner 0. *)
Definition rise1 (f : coefficients) (i j k : nat) : R :=
  INR i * (f (pred i) (S j) k - f (S (pred i)) j k) +
  INR j * (f i (S (pred j)) k - f (S i) (pred j) k) +
  INR k * (f i (S j) (pred k) - f (S i) j (pred k)).
Definition rise2 (f : coefficients) (i j k : nat) : R :=
  INR i * (f (pred i) j (S k) - f (S (pred i)) j k) +
  INR j * (f i (pred j) (S k) - f (S i) (pred j) k) +
  INR k * (f i j (S (pred k)) - f (S i) j (pred k)).

Definition gentle (d : nat) (eps : R) (t : triangle) (f : coefficients) : Prop :=
  forall i j k, (i + j + k = d)%nat ->
  let a := rise1 f i j k in let b := rise2 f i j k in
  let x := a * (fst (corner2 t) - fst (corner0 t)) - b * (fst (corner1 t) - fst (corner0 t)) in
  let y := a * (snd (corner2 t) - snd (corner0 t)) - b * (snd (corner1 t) - snd (corner0 t)) in
  x ^ 2 + y ^ 2 <= (eps * area t * f i j k) ^ 2.

Lemma cauchy x y u v : (x * u + y * v) ^ 2 <= (x ^ 2 + y ^ 2) * (u ^ 2 + v ^ 2).
Proof. pose proof (pow2_ge_0 (x * v - y * u)). nra. Qed.

Lemma square_le a b : 0 <= b -> a ^ 2 <= b ^ 2 -> a <= b.
Proof. intros Hb H. nra. Qed.

Lemma apart_square z w : apart z w ^ 2 = (fst z - fst w) ^ 2 + (snd z - snd w) ^ 2.
Proof.
  unfold apart. rewrite <- Rsqr_pow2, Rsqr_sqrt; trivial.
  pose proof (pow2_ge_0 (fst z - fst w)). pose proof (pow2_ge_0 (snd z - snd w)). lra.
Qed.

Lemma apart_nonneg z w : 0 <= apart z w.
Proof. apply sqrt_pos. Qed.

Lemma growth_inside d eps t P o z w : (0 < d)%nat -> 0 <= eps -> 0 < area t ->
  (forall i j k, (i + j + k = d)%nat -> 0 <= P (row t i j k) o) ->
  gentle d eps t (fun i j k => P (row t i j k) o) ->
  inside t z -> inside t w ->
  level d P o t z <= exp (eps * apart z w) * level d P o t w.
Proof.
  intros Hd He Ht HP Hg Hz Hw. destruct d as [|d]; [lia|].
  set (f := fun i j k => P (row t i j k) o) in *.
  destruct (inside_weights t z Ht Hz) as (Z0 & Z1 & Z2).
  destruct (inside_weights t w Ht Hw) as (W0 & W1 & W2).
  pose proof (weights_sum t z Ht) as HsZ. pose proof (weights_sum t w Ht) as HsW.
  unfold level. fold f.
  set (u := weight0 t z - weight0 t w). set (v := weight1 t z - weight1 t w).
  set (q := weight2 t z - weight2 t w).
  replace (weight0 t z) with (weight0 t w + u) by (unfold u; ring).
  replace (weight1 t z) with (weight1 t w + v) by (unfold v; ring).
  replace (weight2 t z) with (weight2 t w + q) by (unfold q; ring).
  apply growth; trivial; try (unfold u, v, q; lra).
  intros i j k Hijk. specialize (Hg i j k Hijk). cbv zeta in Hg.
  set (a := rise1 f i j k) in *. set (b := rise2 f i j k) in *.
  assert (Hslope : slope u v q f i j k = v * a + q * b).
  { unfold slope, raised0, raised1, raised2, along, a, b, rise1, rise2.
    replace u with (- v - q) by (unfold u, v, q; lra).
    destruct i, j, k; simpl pred; simpl INR; ring. }
  rewrite Hslope.
  assert (Hv : v * area t = (fst z - fst w) * (snd (corner2 t) - snd (corner0 t)) -
    (snd z - snd w) * (fst (corner2 t) - fst (corner0 t))).
  { unfold v, weight1, cross. field_simplify; [|lra]. unfold Rdiv. ring. }
  assert (Hq : q * area t = (snd z - snd w) * (fst (corner1 t) - fst (corner0 t)) -
    (fst z - fst w) * (snd (corner1 t) - snd (corner0 t))).
  { unfold q, weight2, cross. field_simplify; [|lra]. unfold Rdiv. ring. }
  set (x := a * (fst (corner2 t) - fst (corner0 t)) - b * (fst (corner1 t) - fst (corner0 t))) in *.
  set (y := a * (snd (corner2 t) - snd (corner0 t)) - b * (snd (corner1 t) - snd (corner0 t))) in *.
  assert (Hprod : (v * a + q * b) * area t = y * (fst z - fst w) + (- x) * (snd z - snd w)).
  { replace ((v * a + q * b) * area t) with (v * area t * a + q * area t * b) by ring.
    rewrite Hv, Hq. unfold x, y. ring. }
  apply Rmult_le_reg_r with (area t); trivial. rewrite Hprod.
  pose proof (apart_nonneg z w) as Ha. specialize (HP i j k Hijk). fold (f i j k) in HP.
  apply square_le; [repeat apply Rmult_le_pos; lra|].
  eapply Rle_trans; [apply cauchy|].
  replace ((eps * apart z w * f i j k * area t) ^ 2) with
    ((eps * area t * f i j k) ^ 2 * apart z w ^ 2) by ring.
  rewrite <- apart_square. apply Rmult_le_compat_r; [apply pow2_ge_0|].
  replace (y ^ 2 + (- x) ^ 2) with (x ^ 2 + y ^ 2) by ring. exact Hg.
Qed.
