(** The program for designs at every point of a region, and its proof. *)

From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Optmech Require Import Definitions File Exponential Rates Checker Sums Keeps Correct Bernstein
  Mesh Walk.
Import ListNotations.

(** ** The program *)
Section Program.
Open Scope Z_scope.

Definition turn (a b z : place_of_file) : Z :=
  (fst b - fst a) * (snd z - snd a) - (snd b - snd a) * (fst z - fst a).

Definition doubled (t : triangle_of_file) : Z := turn (first t) (second t) (third t).

Definition side : Type := place_of_file * place_of_file * (nat -> nat -> nat).

Definition row_of (d : nat) (t : triangle_of_file) (j k : nat) : nat :=
  nth (position d j k) (controls t) O.

Definition sides (d : nat) (t : triangle_of_file) : list side :=
  [ (first t, second t, fun _ j => row_of d t j O);
    (second t, third t, fun i j => row_of d t i j);
    (third t, first t, fun i _ => row_of d t O i) ].

Definition vertices (t : triangle_of_file) : list place_of_file := [first t; second t; third t].

Definition same (a b : place_of_file) : bool := (fst a =? fst b) && (snd a =? snd b).

Definition fitting (d : nat) (e e' : side) : bool :=
  let '(a, b, r) := e in let '(a', b', r') := e' in
  same a' b && same b' a &&
  forallb (fun i => Nat.eqb (r' (d - i)%nat i) (r i (d - i)%nat)) (seq 0 (S d)).

Definition all_left (e : side) (mesh : list triangle_of_file) : bool :=
  let '(a, b, _) := e in
  forallb (fun t => forallb (fun v => 0 <=? turn a b v) (vertices t)) mesh.

Definition parts (d : nat) (s t : triangle_of_file) : bool :=
  existsb (fun e : side => let '(a, b, _) := e in
    forallb (fun v => turn a b v <=? 0) (vertices t)) (sides d s).

Fixpoint all_parted (d : nat) (mesh : list triangle_of_file) : bool :=
  match mesh with
  | [] => true
  | t :: rest => forallb (fun u => parts d t u || parts d u t) rest && all_parted d rest
  end.

(** Triangles that do not overlap; every edge is that of two, or all is on its left. *)
Definition mesh_fits (d : nat) (rows : nat) (mesh : list triangle_of_file) : bool :=
  let every := flat_map (sides d) mesh in
  forallb (fun t => (0 <? doubled t) && forallb (fun k => Nat.ltb k rows) (controls t) &&
    (0 <? Z.of_nat rows)) mesh &&
  all_parted d mesh &&
  forallb (fun e => existsb (fitting d e) every || all_left e mesh) every.

Definition indices (d : nat) : list (nat * nat * nat) :=
  flat_map (fun k => map (fun j => ((d - j - k)%nat, j, k)) (seq 0 (S (d - k)))) (seq 0 (S d)).

(** The rows of a triangle's coefficients, found once. *)
Definition own_rows (rows : list (list Z)) (t : triangle_of_file) : list (list Z) :=
  map (fun k => nth k rows []) (controls t).

Definition coefficient (d : nat) (rows own : list (list Z)) (o _i j k : nat) : Z :=
  nth o (nth (position d j k) own (nth O rows [])) 0.

Definition rise_1 (f : nat -> nat -> nat -> Z) (i j k : nat) : Z :=
  Z.of_nat i * (f (pred i) (S j) k - f (S (pred i)) j k) +
  Z.of_nat j * (f i (S (pred j)) k - f (S i) (pred j) k) +
  Z.of_nat k * (f i (S j) (pred k) - f (S i) j (pred k)).
Definition rise_2 (f : nat -> nat -> nat -> Z) (i j k : nat) : Z :=
  Z.of_nat i * (f (pred i) j (S k) - f (S (pred i)) j k) +
  Z.of_nat j * (f i (pred j) (S k) - f (S i) (pred j) k) +
  Z.of_nat k * (f i j (S (pred k)) - f (S i) j (pred k)).

(** A fraction that is at most the rate. *)
Definition rate_below (r : rate) : Z * Z :=
  match log r with
  | None => (num r, den r)
  | Some l => (num r * log_low l, den r * 2 ^ log_bits l)
  end.

Definition slopes_fit (low : Z * Z) (bits : Z) (t : triangle_of_file)
    (f : nat -> nat -> nat -> Z) (index : nat * nat * nat) : bool :=
  let '(i, j, k) := index in
  let a := rise_1 f i j k in
  let b := rise_2 f i j k in
  let x := a * (fst (third t) - fst (first t)) - b * (fst (second t) - fst (first t)) in
  let y := a * (snd (third t) - snd (first t)) - b * (snd (second t) - snd (first t)) in
  let limit := fst low * doubled t * f i j k in
  (x * x + y * y) * (2 ^ bits * 2 ^ bits * (snd low * snd low)) <=? limit * limit.

Fixpoint blended (d : nat) (f : nat -> nat -> nat -> Z) (a b c : Z) : Z :=
  match d with
  | O => f O O O
  | S e => a * blended e (fun i j k => f (S i) j k) a b c +
           b * blended e (fun i j k => f i (S j) k) a b c +
           c * blended e (fun i j k => f i j (S k)) a b c
  end.

Definition holds_place (z : place_of_file) (t : triangle_of_file) : bool :=
  (0 <=? turn (second t) (third t) z) && (0 <=? turn (third t) (first t) z) &&
  (0 <=? turn (first t) (second t) z).

(** What the mechanism reports from a place is the row of the design there. *)
Definition place_fits (f : everywhere_file) (s : nat) : bool :=
  let d := degree f in
  let z := nth s (places f) (0, 0) in
  let given := nth s (matrix (design f)) [] in
  match find (holds_place z) (triangles f) with
  | None => false
  | Some t =>
      let own := own_rows (control_rows f) t in
      let scale := doubled t ^ Z.of_nat d * 2 ^ control_bits f in
      let a := turn (second t) (third t) z in
      let b := turn (third t) (first t) z in
      let c := turn (first t) (second t) z in
      forallb (fun o =>
        nth o given 0 * scale =?
        blended d (coefficient d (control_rows f) own o) a b c * 2 ^ matrix_bits (design f))
        (seq 0 (observables (design f)))
  end.

Definition same_logarithm (l k : logarithm) : bool :=
  (log_num l =? log_num k) && (log_den l =? log_den k).

Definition same_rate (r q : rate) : bool :=
  (num r =? num q) && (den r =? den q) &&
  match log r, log q with
  | None, None => true
  | Some l, Some k => same_logarithm l k
  | _, _ => false
  end.

(** The ratios of the design are no stricter than what privacy at every point says of its places. *)
Definition ratios_follow (f : everywhere_file) : bool :=
  let n := secrets (design f) in
  match promises (design f) with
  | FRatios r bits d window :: _ =>
      same_rate r (epsilon f) && rate_ok r && (0 <=? bits) &&
      forallb (fun i =>
        let own := nth i d [] in
        let z := nth i (places f) (0, 0) in
        forallb (fun j =>
          match nth j own None with
          | None => true
          | Some v =>
              let w := nth j (places f) (0, 0) in
              let x := fst z - fst w in
              let y := snd z - snd w in
              (0 <=? v) &&
              ((x * x + y * y) * (2 ^ bits * 2 ^ bits) <=?
               v * v * (2 ^ place_bits f * 2 ^ place_bits f))
          end) (seq 0 n)) (seq 0 n)
  | _ => false
  end.

Definition check_everywhere (f : everywhere_file) : bool :=
  let d := degree f in
  let m := observables (design f) in
  let low := rate_below (epsilon f) in
  Nat.ltb 0 d && (0 <=? place_bits f) && rate_ok (epsilon f) &&
  is_mechanism (control_count f) m (control_bits f) (control_rows f) &&
  mesh_fits d (control_count f) (triangles f) &&
  forallb (fun t =>
    let own := own_rows (control_rows f) t in
    forallb (fun o => forallb (slopes_fit low (place_bits f) t
      (coefficient d (control_rows f) own o)) (indices d)) (seq 0 m)) (triangles f) &&
  forallb (place_fits f) (seq 0 (secrets (design f))) &&
  ratios_follow f && check (design f).

End Program.

(** ** The proof *)
Open Scope R_scope.

Lemma rate_below_ok r : rate_ok r = true ->
  (0 <= fst (rate_below r))%Z /\ (0 < snd (rate_below r))%Z /\
  IZR (fst (rate_below r)) / IZR (snd (rate_below r)) <= value r.
Proof.
  unfold rate_ok, rate_below, value, unit_of. intros H. split_ands.
  destruct (log r) as [l|]; cbn [fst snd]; [|repeat split; trivial; lra].
  match goal with H : hints_ok l = true |- _ => rename H into Hl end.
  pose proof (log_low_ok l Hl) as Hlow. unfold hints_ok in Hl. split_ands.
  assert (Hp : (0 < 2 ^ log_bits l)%Z) by now apply pow2_pos.
  split; [nia|split; [nia|]]. rewrite !mult_IZR.
  assert (0 < IZR (den r)) by now apply IZR_lt. assert (0 <= IZR (num r)) by now apply IZR_le.
  apply IZR_lt in Hp.
  replace (IZR (num r) * IZR (log_low l) / (IZR (den r) * IZR (2 ^ log_bits l))) with
    (IZR (num r) / IZR (den r) * (IZR (log_low l) / IZR (2 ^ log_bits l))) by (field; lra).
  apply Rmult_le_compat_l; trivial. unfold Rdiv. apply Rmult_le_pos; trivial.
  left. now apply Rinv_0_lt_compat.
Qed.

Lemma sum_blend m d : forall (f : nat -> nat -> nat -> nat -> R) a b c,
  sum m (fun o => blend d (f o) a b c) = blend d (fun i j k => sum m (fun o => f o i j k)) a b c.
Proof.
  induction m as [|m IH]; intros f a b c; simpl.
  - rewrite (blend_ext d _ (fun i j k => 0 * 0)) by (intros; ring).
    rewrite (blend_scale d 0 (fun _ _ _ => 0)). ring.
  - rewrite IH. symmetry. apply blend_plus.
Qed.

Lemma blended_ok d : forall f a b c,
  IZR (blended d f a b c) = blend d (fun i j k => IZR (f i j k)) (IZR a) (IZR b) (IZR c).
Proof.
  induction d as [|d IH]; intros; simpl; trivial.
  now rewrite !plus_IZR, !mult_IZR, !IH.
Qed.

Lemma blend_homogeneous d : forall f a b c x,
  blend d f (x * a) (x * b) (x * c) = x ^ d * blend d f a b c.
Proof. induction d as [|d IH]; intros; simpl; [ring|]. rewrite !IH. ring. Qed.

Lemma index_in d i j k : (i + j + k = d)%nat -> In (i, j, k) (indices d).
Proof.
  intros H. unfold indices. apply in_flat_map. exists k. split; [apply in_seq; lia|].
  apply in_map_iff. exists j. split; [f_equal; f_equal; lia|apply in_seq; lia].
Qed.

Section File.
  Variable f : everywhere_file.
  Let d := degree f.
  Let bits := place_bits f.
  Let m := observables (design f).
  Let n := secrets (design f).
  Hypothesis Hbits : (0 <= bits)%Z.
  Let B := IZR (2 ^ bits).
  Let pt := place_meant bits.
  Let tri := triangle_meant d bits.
  Let P (k o : nat) : R := over (control_bits f) (entry (control_rows f) k o).
  Hypothesis Hmech : is_mechanism (control_count f) m (control_bits f) (control_rows f) = true.
  Hypothesis Hd : (0 < d)%nat.

  Lemma B_pos : 0 < B.
  Proof. apply IZR_lt, pow2_pos, Hbits. Qed.

  Lemma cross_turn a b z : cross (pt a) (pt b) (pt z) = IZR (turn a b z) / (B * B).
  Proof.
    pose proof B_pos. unfold cross, turn, pt, place_meant, over. cbn [fst snd]. fold B.
    rewrite minus_IZR, !mult_IZR, !minus_IZR. field. lra.
  Qed.

  Lemma cross_sign a b z :
    ((0 <= turn a b z)%Z <-> 0 <= cross (pt a) (pt b) (pt z)) /\
    ((turn a b z <= 0)%Z <-> cross (pt a) (pt b) (pt z) <= 0) /\
    ((0 < turn a b z)%Z <-> 0 < cross (pt a) (pt b) (pt z)).
  Proof.
    rewrite cross_turn. pose proof B_pos.
    assert (Hi : 0 < / (B * B)) by (apply Rinv_0_lt_compat; nra). unfold Rdiv.
    set (i := / (B * B)) in *. clearbody i.
    repeat split; intros Hx.
    - apply IZR_le in Hx. nra.
    - apply le_IZR. nra.
    - apply IZR_le in Hx. nra.
    - apply le_IZR. nra.
    - apply IZR_lt in Hx. nra.
    - apply lt_IZR. nra.
  Qed.

  Lemma area_doubled t : area (tri t) = IZR (doubled t) / (B * B).
  Proof. apply cross_turn. Qed.

  Lemma edges_sides t : edges (tri t) =
    map (fun e : side => let '(a, b, r) := e in
      {| from := pt a; towards := pt b; rows_along := r |}) (sides d t).
  Proof. reflexivity. Qed.

  Lemma corners_vertices t : corners (tri t) = map pt (vertices t).
  Proof. reflexivity. Qed.

  Lemma parts_ok s t : parts d s t = true -> parted (tri s) (tri t).
  Proof.
    unfold parts. intros H. apply existsb_exists in H. destruct H as ([[a b] r] & Hin & H).
    exists {| from := pt a; towards := pt b; rows_along := r |}. split.
    - rewrite edges_sides. apply in_map_iff. now exists (a, b, r).
    - intros v Hv. rewrite corners_vertices in Hv. apply in_map_iff in Hv.
      destruct Hv as (w & <- & Hw). rewrite forallb_forall in H. specialize (H w Hw).
      apply Z.leb_le in H. unfold left_of. cbn [from towards]. now apply cross_sign.
  Qed.

  Lemma all_parted_ok mesh : all_parted d mesh = true -> forall s t,
    In s (map tri mesh) -> In t (map tri mesh) -> s = t \/ parted s t \/ parted t s.
  Proof.
    induction mesh as [|u mesh IH]; intros H s t; [easy|].
    cbn [all_parted] in H. apply andb_prop in H. destruct H as [Hu Hrest].
    rewrite forallb_forall in Hu.
    assert (Hone : forall v, In v (map tri mesh) -> parted (tri u) v \/ parted v (tri u)).
    { intros v Hv. apply in_map_iff in Hv. destruct Hv as (w & <- & Hw). specialize (Hu w Hw).
      apply orb_prop in Hu. destruct Hu as [Hu|Hu]; apply parts_ok in Hu; auto. }
    cbn [map In]. intros [<-|Hs] [<-|Ht]; auto.
    specialize (Hone s Hs). tauto.
  Qed.

  Lemma same_ok a b : same a b = true -> a = b.
  Proof.
    unfold same. intros H. split_ands. destruct a, b. cbn [fst snd] in *. now subst.
  Qed.

  Lemma fitting_ok a b r a' b' r' : fitting d (a, b, r) (a', b', r') = true ->
    matched d {| from := pt a; towards := pt b; rows_along := r |}
              {| from := pt a'; towards := pt b'; rows_along := r' |}.
  Proof.
    unfold fitting. intros H. apply andb_prop in H. destruct H as [H Hr].
    apply andb_prop in H. destruct H as [H1 H2]. apply same_ok in H1, H2. subst a' b'.
    unfold matched. cbn [from towards rows_along]. repeat split.
    intros i j Hij. rewrite forallb_forall in Hr. specialize (Hr i ltac:(apply in_seq; lia)).
    apply Nat.eqb_eq in Hr. replace (d - i)%nat with j in Hr by lia. exact Hr.
  Qed.

  Hypothesis Hmesh : mesh_fits d (control_count f) (triangles f) = true.
  Let mesh := map tri (triangles f).

  Lemma mesh_area t : In t mesh -> 0 < area t.
  Proof.
    intros Ht. apply in_map_iff in Ht. destruct Ht as (u & <- & Hu).
    pose proof Hmesh as H. unfold mesh_fits in H. cbv zeta in H. split_ands.
    match goal with H : forallb _ (triangles f) = true |- _ => rewrite forallb_forall in H;
      specialize (H u Hu); cbv beta in H end.
    split_ands. now apply cross_sign.
  Qed.

  Lemma mesh_parted s t : In s mesh -> In t mesh -> s = t \/ parted s t \/ parted t s.
  Proof.
    pose proof Hmesh as H. unfold mesh_fits in H. cbv zeta in H. split_ands.
    now apply all_parted_ok.
  Qed.

  Lemma mesh_edges t e : In t mesh -> In e (edges t) ->
    (exists t' e', In t' mesh /\ In e' (edges t') /\ matched d e e') \/
    (forall t' v, In t' mesh -> In v (corners t') -> 0 <= left_of e v).
  Proof.
    intros Ht He. apply in_map_iff in Ht. destruct Ht as (u & <- & Hu).
    rewrite edges_sides in He. apply in_map_iff in He. destruct He as ([[a b] r] & <- & He).
    pose proof Hmesh as H. unfold mesh_fits in H. cbv zeta in H.
    apply andb_prop in H. destruct H as [_ H]. rewrite forallb_forall in H.
    specialize (H (a, b, r) ltac:(apply in_flat_map; eauto)).
    apply orb_prop in H. destruct H as [H|H].
    - left. apply existsb_exists in H. destruct H as ([[a' b'] r'] & Hin & Hfit).
      apply in_flat_map in Hin. destruct Hin as (u' & Hu' & Hin).
      exists (tri u'), {| from := pt a'; towards := pt b'; rows_along := r' |}.
      split; [now apply in_map|]. split; [|now apply fitting_ok].
      rewrite edges_sides. apply in_map_iff. now exists (a', b', r').
    - right. intros t' v Ht' Hv. apply in_map_iff in Ht'. destruct Ht' as (u' & <- & Hu').
      rewrite corners_vertices in Hv. apply in_map_iff in Hv. destruct Hv as (w & <- & Hw).
      unfold all_left in H. rewrite forallb_forall in H. specialize (H u' Hu').
      rewrite forallb_forall in H. specialize (H w Hw). apply Z.leb_le in H.
      unfold left_of. cbn [from towards]. now apply cross_sign.
  Qed.

  Lemma control_nonneg k o : (0 <= entry (control_rows f) k o)%Z.
  Proof. exact (entry_nonneg _ _ _ _ Hmech k o). Qed.

  Lemma control_bits_nonneg : (0 <= control_bits f)%Z.
  Proof. exact (bits_nonneg _ _ _ _ Hmech). Qed.

  Let C := IZR (2 ^ control_bits f).

  Lemma C_pos : 0 < C.
  Proof. apply IZR_lt, pow2_pos, control_bits_nonneg. Qed.

  Lemma P_nonneg k o : 0 <= P k o.
  Proof.
    unfold P, over, Rdiv. apply Rmult_le_pos; [apply IZR_le, control_nonneg|].
    left. apply Rinv_0_lt_compat, C_pos.
  Qed.

  Lemma coefficient_ok t o i j k :
    coefficient d (control_rows f) (own_rows (control_rows f) t) o i j k =
    entry (control_rows f) (row (tri t) i j k) o.
  Proof.
    unfold coefficient, own_rows, entry. f_equal.
    exact (map_nth (fun k => nth k (control_rows f) []) (controls t) O (position d j k)).
  Qed.

  Lemma coefficient_over t o i j k : P (row (tri t) i j k) o =
    IZR (coefficient d (control_rows f) (own_rows (control_rows f) t) o i j k) / C.
  Proof. now rewrite coefficient_ok. Qed.

  Variables low_num low_den : Z.
  Hypothesis Hnum : (0 <= low_num)%Z.
  Hypothesis Hden : (0 < low_den)%Z.
  Hypothesis Hslopes : forallb (fun t =>
    let own := own_rows (control_rows f) t in
    forallb (fun o => forallb (slopes_fit (low_num, low_den) (place_bits f) t
      (coefficient d (control_rows f) own o)) (indices d)) (seq 0 m)) (triangles f) = true.
  Let eps := IZR low_num / IZR low_den.

  Lemma eps_nonneg : 0 <= eps.
  Proof.
    unfold eps, Rdiv. apply Rmult_le_pos; [now apply IZR_le|].
    left. now apply Rinv_0_lt_compat, IZR_lt.
  Qed.

  Lemma mesh_gentle o : (o < m)%nat -> forall t, In t mesh ->
    gentle d eps t (fun i j k => P (row t i j k) o).
  Proof.
    intros Ho t Ht. apply in_map_iff in Ht. destruct Ht as (u & <- & Hu).
    pose proof Hslopes as H. rewrite forallb_forall in H. specialize (H u Hu). cbv zeta in H.
    rewrite forall_seq in H. specialize (H o Ho). cbv beta in H. rewrite forallb_forall in H.
    intros i j k Hijk. specialize (H (i, j, k) (index_in d i j k Hijk)).
    set (g := coefficient d (control_rows f) (own_rows (control_rows f) u) o) in *.
    unfold slopes_fit in H. cbv zeta in H. cbn [fst snd] in H. fold bits in H.
    apply Z.leb_le in H. apply IZR_le in H.
    pose proof B_pos as HB. pose proof C_pos as HC. assert (HN := IZR_lt _ _ Hden).
    assert (E1 : rise1 (fun i j k => P (row (tri u) i j k) o) i j k = IZR (rise_1 g i j k) / C).
    { unfold rise1, rise_1. rewrite !coefficient_over. fold g.
      rewrite !plus_IZR, !mult_IZR, !minus_IZR, <- !INR_IZR_INZ. field. lra. }
    assert (E2 : rise2 (fun i j k => P (row (tri u) i j k) o) i j k = IZR (rise_2 g i j k) / C).
    { unfold rise2, rise_2. rewrite !coefficient_over. fold g.
      rewrite !plus_IZR, !mult_IZR, !minus_IZR, <- !INR_IZR_INZ. field. lra. }
    cbv zeta. rewrite E1, E2. cbv beta. rewrite coefficient_over. fold g.
    rewrite area_doubled. unfold eps.
    cbn [tri triangle_meant corner0 corner1 corner2]. unfold place_meant, over. cbn [fst snd].
    fold B.
    set (a := IZR (rise_1 g i j k)) in *. set (b := IZR (rise_2 g i j k)) in *.
    rewrite !mult_IZR, plus_IZR, !mult_IZR, !minus_IZR, !mult_IZR, !minus_IZR in H.
    fold a b B in H.
    set (x2 := IZR (fst (third u))) in *. set (x1 := IZR (fst (second u))) in *.
    set (x0 := IZR (fst (first u))) in *. set (y2 := IZR (snd (third u))) in *.
    set (y1 := IZR (snd (second u))) in *. set (y0 := IZR (snd (first u))) in *.
    set (D := IZR (doubled u)) in *. set (F := IZR (g i j k)) in *.
    set (N := IZR low_den) in *. set (L := IZR low_num) in *.
    set (X := a * (x2 - x0) - b * (x1 - x0)) in *. set (Y := a * (y2 - y0) - b * (y1 - y0)) in *.
    replace (a / C * (x2 / B - x0 / B) - b / C * (x1 / B - x0 / B)) with (X / (C * B))
      by (unfold X; field; lra).
    replace (a / C * (y2 / B - y0 / B) - b / C * (y1 / B - y0 / B)) with (Y / (C * B))
      by (unfold Y; field; lra).
    assert (HK : 0 < C * C * (B * B) * (B * B) * (N * N))
      by (repeat apply Rmult_lt_0_compat; trivial).
    apply Rmult_le_reg_r with (C * C * (B * B) * (B * B) * (N * N)); trivial.
    replace (((X / (C * B)) ^ 2 + (Y / (C * B)) ^ 2) * (C * C * (B * B) * (B * B) * (N * N))) with
      ((X * X + Y * Y) * (B * B * (N * N))) by (field; lra).
    replace ((L / N * (D / (B * B)) * (F / C)) ^ 2 * (C * C * (B * B) * (B * B) * (N * N))) with
      (L * D * F * (L * D * F)) by (field; lra).
    exact H.
  Qed.

  Lemma private_mesh z w o v u : (o < m)%nat -> reports d mesh P z o v -> reports d mesh P w o u ->
    v <= exp (eps * apart z w) * u.
  Proof.
    intros Ho (s & a & b & c & Hs & Hz & ->) (t & a' & b' & c' & Ht & Hw & ->).
    destruct (lies_inside s z a b c (mesh_area s Hs) Hz) as (Is & -> & -> & ->).
    destruct (lies_inside t w a' b' c' (mesh_area t Ht) Hw) as (It & -> & -> & ->).
    exact (private_inside d eps mesh P o Hd eps_nonneg mesh_area mesh_parted mesh_edges
      (fun _ i j k _ _ => P_nonneg _ _) (mesh_gentle o Ho) s t z w Hs Ht Is It).
  Qed.

  Lemma row_in_range t i j k : In t (triangles f) -> (row (tri t) i j k < control_count f)%nat.
  Proof.
    intros Ht. pose proof Hmesh as H. unfold mesh_fits in H. cbv zeta in H. split_ands.
    match goal with H : forallb _ (triangles f) = true |- _ => rewrite forallb_forall in H;
      specialize (H t Ht); cbv beta in H end.
    split_ands. cbn [row tri triangle_meant].
    destruct (Nat.lt_ge_cases (position d j k) (length (controls t))) as [Hl|Hl].
    - match goal with H : forallb _ (controls t) = true |- _ => rewrite forallb_forall in H;
        specialize (H _ (nth_In _ O Hl)) end.
      now apply Nat.ltb_lt.
    - rewrite nth_overflow by trivial. lia.
  Qed.

  Lemma distributions t z a b c : In t mesh -> lies t z a b c ->
    (forall o, (o < m)%nat -> 0 <= blend d (fun i j k => P (row t i j k) o) a b c) /\
    sum m (fun o => blend d (fun i j k => P (row t i j k) o) a b c) = 1.
  Proof.
    intros Ht (Ha & Hb & Hc & Hs & _). apply in_map_iff in Ht. destruct Ht as (u & <- & Hu). split.
    - intros o _. apply blend_nonneg; trivial. intros. apply P_nonneg.
    - rewrite (sum_blend m d (fun o i j k => P (row (tri u) i j k) o)).
      rewrite <- (blend_const d 1 a b c Hs). apply blend_ext. intros i j k _.
      apply (is_mechanism_ok _ _ _ _ Hmech). now apply row_in_range.
  Qed.

  Lemma place_ok s : (s < n)%nat -> place_fits f s = true ->
    (forall z, nth s (places f) (0, 0)%Z = z -> in_region mesh (pt z) /\
      forall o, (o < m)%nat -> (0 <= matrix_bits (design f))%Z ->
      reports d mesh P (pt z) o (matrix_meant (design f) s o)).
  Proof.
    intros Hs H z Hz. unfold place_fits in H. cbv zeta in H. rewrite Hz in H.
    destruct (find _ _) as [t|] eqn:Hfind; [|discriminate].
    apply find_some in Hfind. destruct Hfind as [Ht Hin].
    unfold holds_place in Hin. split_ands.
    assert (Hmt : In (tri t) mesh) by now apply in_map.
    pose proof (mesh_area _ Hmt) as Hpos.
    assert (Is : inside (tri t) (pt z)).
    { intros e He. rewrite edges_sides in He. cbn [map sides In] in He.
      destruct He as [<-|[<-|[<-|[]]]]; unfold left_of; cbn [from towards]; now apply cross_sign. }
    assert (Hl : lies (tri t) (pt z) (weight0 (tri t) (pt z)) (weight1 (tri t) (pt z))
      (weight2 (tri t) (pt z))).
    { destruct (inside_weights _ _ Hpos Is) as (W0 & W1 & W2).
      destruct (in_weights (tri t) (pt z) Hpos). pose proof (weights_sum (tri t) (pt z) Hpos).
      repeat split; trivial. }
    split; [now exists (tri t), (weight0 (tri t) (pt z)), (weight1 (tri t) (pt z)),
      (weight2 (tri t) (pt z))|].
    intros o Ho Hmb. exists (tri t), (weight0 (tri t) (pt z)), (weight1 (tri t) (pt z)),
      (weight2 (tri t) (pt z)).
    repeat (split; [assumption|]).
    rewrite forall_seq in H. specialize (H o Ho). cbv beta in H. apply Z.eqb_eq in H.
    apply (f_equal IZR) in H. rewrite !mult_IZR, blended_ok in H. fold C in H.
    pose proof B_pos as HB. pose proof C_pos as HC.
    assert (HM : 0 < IZR (2 ^ matrix_bits (design f))) by now apply IZR_lt, pow2_pos.
    set (M := IZR (2 ^ matrix_bits (design f))) in *.
    assert (HD : 0 < IZR (doubled t)).
    { rewrite area_doubled in Hpos. assert (0 < / (B * B)) by (apply Rinv_0_lt_compat; nra).
      unfold Rdiv in Hpos. nra. }
    rewrite <- pow_IZR in H. set (D := IZR (doubled t)) in *.
    assert (Hweights : forall x y, cross (pt x) (pt y) (pt z) / area (tri t) =
      / D * IZR (turn x y z)).
    { intros x y. rewrite cross_turn, area_doubled. fold D. field. lra. }
    unfold weight0, weight1, weight2. cbn [tri triangle_meant corner0 corner1 corner2].
    fold bits. change (place_meant bits) with pt. rewrite !Hweights, blend_homogeneous.
    rewrite (blend_ext d _ (fun i j k => / C *
      IZR (coefficient d (control_rows f) (own_rows (control_rows f) t) o i j k)))
      by (intros; rewrite <- (coefficient_over t o) || idtac;
          change (nth (position d j k) (controls t) 0%nat) with (row (tri t) i j k);
          rewrite coefficient_over; unfold Rdiv; ring).
    rewrite (blend_scale d (/ C)). rewrite pow_inv.
    change (degree f) with d in H.
    set (X := blend d (fun i j k => IZR (coefficient d (control_rows f)
      (own_rows (control_rows f) t) o i j k)) (IZR (turn (second t) (third t) z))
      (IZR (turn (third t) (first t) z)) (IZR (turn (first t) (second t) z))) in *.
    unfold matrix_meant, over, entry. fold M.
    assert (HDd : 0 < D ^ d) by now apply pow_lt.
    apply Rmult_eq_reg_r with (D ^ d * C * M); [|apply Rgt_not_eq; repeat apply Rmult_lt_0_compat; trivial].
    match goal with |- ?l = ?r => replace r with (X * M) by (field; lra) end.
    rewrite <- H. field. lra.
  Qed.
End File.

Lemma same_rate_ok r q : same_rate r q = true -> value r = value q.
Proof.
  unfold same_rate, value, unit_of. intros H. apply andb_prop in H. destruct H as [H Hl].
  split_ands. repeat match goal with H : (_ = _)%Z |- _ => rewrite H; clear H end.
  destruct (log r) as [l|], (log q) as [k|]; try discriminate; trivial.
  unfold same_logarithm in Hl. split_ands.
  now repeat match goal with H : (_ = _)%Z |- _ => rewrite H; clear H end.
Qed.

Theorem everywhere : forall f, check_everywhere f = true -> holds_everywhere f.
Proof.
  intros f H. unfold check_everywhere in H. cbv zeta in H.
  apply andb_prop in H. destruct H as [H Hcheck].
  apply andb_prop in H. destruct H as [H Hfollow].
  apply andb_prop in H. destruct H as [H Hplaces].
  apply andb_prop in H. destruct H as [H Hslopes].
  apply andb_prop in H. destruct H as [H Hmesh].
  apply andb_prop in H. destruct H as [H Hmech].
  apply andb_prop in H. destruct H as [H Hrate].
  apply andb_prop in H. destruct H as [Hd Hbits].
  apply Nat.ltb_lt in Hd. apply Z.leb_le in Hbits.
  destruct (rate_below_ok _ Hrate) as (Hnum & Hden & Hlow).
  destruct (rate_below (epsilon f)) as [low_num low_den] eqn:Elow. cbn [fst snd] in *.
  pose proof (correct _ Hcheck) as Hholds. unfold holds, optimal in Hholds.
  destruct Hholds as (Hsome & (HQ & Hkept & Hcost & Hbound) & Hproper).
  assert (Hmb : (0 <= matrix_bits (design f))%Z).
  { unfold check in Hcheck. repeat (apply andb_prop in Hcheck; destruct Hcheck as [Hcheck _]).
    now apply Z.leb_le in Hcheck. }
  unfold ratios_follow in Hfollow. cbv zeta in Hfollow.
  destruct (promises (design f)) as [|[r bits dist window| | | | | | |] rest] eqn:Epromises;
    try discriminate.
  apply andb_prop in Hfollow. destruct Hfollow as [Hfollow Hall].
  apply andb_prop in Hfollow. destruct Hfollow as [Hfollow Hb].
  apply andb_prop in Hfollow. destruct Hfollow as [Hsame Hr].
  apply Z.leb_le in Hb.
  set (place := fun s => place_meant (place_bits f) (nth s (places f) (0%Z, 0%Z))).
  assert (Hat : forall s, (s < secrets (design f))%nat -> in_region (mesh_meant f) (place s) /\
    forall o, (o < observables (design f))%nat -> reports (degree f) (mesh_meant f)
      (fun k o => over (control_bits f) (entry (control_rows f) k o)) (place s) o
      (matrix_meant (design f) s o)).
  { intros s Hs. rewrite forall_seq in Hplaces.
    destruct (place_ok f Hbits Hmech Hmesh s Hs (Hplaces s Hs) _ eq_refl) as [Hreg Hrep].
    split; [exact Hreg|]. intros o Ho. now apply Hrep. }
  unfold holds_everywhere. cbv zeta. split; [exact Hsome|]. split; [|exact Hproper].
  unfold optimal_everywhere. rewrite Epromises. cbn [tl].
  split; [|split; [|split; [exact Hat|split; [exact HQ|split; [|split; [exact Hcost|]]]]]].
  - intros t z a b c Ht Hl. exact (distributions f Hmech Hd Hmesh t z a b c Ht Hl).
  - intros z w o v u Ho Hv Hu.
    pose proof (private_mesh f Hbits Hmech Hd Hmesh low_num low_den Hnum Hden Hslopes
      z w o v u Ho Hv Hu) as Hle.
    eapply Rle_trans; [exact Hle|]. apply Rmult_le_compat_r.
    + destruct Hu as (t & a & b & c & Ht & Hl & ->).
      destruct (distributions f Hmech Hd Hmesh t w a b c Ht Hl) as [Hn _]. now apply Hn.
    + apply exp_mono. apply Rmult_le_compat_r; trivial. apply apart_nonneg.
  - intros p Hp. apply Hkept. now right.
  - intros q Hq Hprivate Hrest c Hc.
    apply (Hbound (fun s => q (place s))); trivial.
    + intros s Hs. apply Hq. now apply Hat.
    + cbn [map]. intros p [<-|Hp]; [|now apply Hrest].
      cbn [meant kept]. intros i j o x Hi Hj Ho Hlim _.
      rewrite forall_seq in Hall. specialize (Hall i Hi). cbv beta zeta in Hall.
      rewrite forall_seq in Hall. specialize (Hall j Hj). cbv beta in Hall.
      destruct (nth j (nth i dist []) None) as [v|]; [|discriminate]. injection Hlim as <-.
      apply andb_prop in Hall. destruct Hall as [Hv Hle]. apply Z.leb_le in Hv, Hle.
      destruct (Hat i Hi) as [Ri _]. destruct (Hat j Hj) as [Rj _].
      eapply Rle_trans; [exact (Hprivate (place i) (place j) o Ri Rj Ho)|].
      apply Rmult_le_compat_r; [now apply (Hq (place j) Rj)|].
      apply exp_mono. rewrite <- (same_rate_ok _ _ Hsame).
      assert (Hval : 0 <= value r).
      { destruct (rate_below_ok r Hr) as (Hn0 & Hd0 & Hl0). eapply Rle_trans; [|exact Hl0].
        unfold Rdiv. apply Rmult_le_pos; [now apply IZR_le|].
        left. now apply Rinv_0_lt_compat, IZR_lt. }
      apply Rmult_le_compat_l; trivial.
      apply IZR_le in Hle. rewrite !mult_IZR, plus_IZR, !mult_IZR, !minus_IZR in Hle.
      assert (HB : 0 < IZR (2 ^ bits)) by now apply IZR_lt, pow2_pos.
      assert (HG : 0 < IZR (2 ^ place_bits f)) by now apply IZR_lt, pow2_pos.
      apply IZR_le in Hv. unfold over.
      apply square_le; [unfold Rdiv; apply Rmult_le_pos; trivial; left; now apply Rinv_0_lt_compat|].
      rewrite apart_square. unfold place, place_meant, over. cbn [fst snd].
      set (X := IZR (fst (nth i (places f) (0%Z, 0%Z)))) in *.
      set (X' := IZR (fst (nth j (places f) (0%Z, 0%Z)))) in *.
      set (Y := IZR (snd (nth i (places f) (0%Z, 0%Z)))) in *.
      set (Y' := IZR (snd (nth j (places f) (0%Z, 0%Z)))) in *.
      set (G := IZR (2 ^ place_bits f)) in *. set (E := IZR (2 ^ bits)) in *.
      apply Rmult_le_reg_r with (G * G * (E * E)); [repeat apply Rmult_lt_0_compat; trivial|].
      replace (((X / G - X' / G) ^ 2 + (Y / G - Y' / G) ^ 2) * (G * G * (E * E))) with
        (((X - X') * (X - X') + (Y - Y') * (Y - Y')) * (E * E)) by (field; lra).
      replace ((IZR v / E) ^ 2 * (G * G * (E * E))) with (IZR v * IZR v * (G * G)) by (field; lra).
      exact Hle.
Qed.
