(** What a file holds, and what its numbers mean. Every number in it is a whole one. *)

From Coq Require Import Reals ZArith List.
From Optmech Require Import Definitions.
Import ListNotations.
Open Scope R_scope.

(** z / 2^bits *)
Definition over (bits z : Z) : R := IZR z / IZR (2 ^ bits).

Definition entry (t : list (list Z)) (i j : nat) : Z := nth j (nth i t []) 0%Z.

(** num / den, or num / den times ln (a / b); two bounds of that logarithm, over 2^bits, are hints
    of the file, which mean nothing and are verified before they are used. *)
Record logarithm := { log_num : Z; log_den : Z; log_low : Z; log_high : Z; log_bits : Z }.
Record rate := { num : Z; den : Z; log : option logarithm }.

Definition unit_of (r : rate) : R :=
  match log r with None => 1 | Some l => ln (IZR (log_num l) / IZR (log_den l)) end.

Definition value (r : rate) : R := IZR (num r) / IZR (den r) * unit_of r.

(** A distribution over secrets: weights, divided by their sum. *)
Definition share (weights : list Z) (s : nat) : R :=
  IZR (nth s weights 0%Z) / IZR (fold_right Z.add 0%Z weights).

(** Two distributions, and the distance that multiplies the rate between them. *)
Definition pair_of_lists : Type := list Z * list Z * Z.
Definition pair_meant (r : rate) (bits : Z) (p : pair_of_lists) : (nat -> R) * (nat -> R) * R :=
  let '(a, b, d) := p in (share a, share b, value r * over bits d).

Inductive promise_of_file :=
| FRatios (r : rate) (bits : Z) (d : list (list (option Z))) (window : list (list bool))
| FLifted (r : rate) (bits : Z) (pairs : list pair_of_lists)
| FApproximate (r : rate) (bits : Z) (pairs : list pair_of_lists) (delta_num delta_den : Z)
| FAdversary (bits : Z) (w : list (list Z)) (d_num d_den : Z)
| FMean (bits : Z) (u : list (list Z)) (q_num q_den : Z)
| FMeans (bits : Z) (u : list (list Z)) (q_num : list Z) (q_den : Z)
| FSupport (ok : list (list bool))
| FFixed (bits : Z) (rows : list (option (list Z))).

(** A window or a support that is left out allows everything. *)
Definition meant (p : promise_of_file) : promise :=
  match p with
  | FRatios r bits d window =>
      Ratios (fun i j => match nth j (nth i d []) None with
                         | None => None
                         | Some z => Some (value r * over bits z) end)
             (fun i o => nth o (nth i window []) true)
  | FLifted r bits pairs => Lifted (map (pair_meant r bits) pairs)
  | FApproximate r bits pairs a b =>
      Approximate (map (pair_meant r bits) pairs) (IZR a / IZR b)
  | FAdversary bits w a b =>
      Adversary (length w) (fun t s => over bits (entry w t s)) (IZR a / IZR b)
  | FMean bits u a b => Mean (fun s o => over bits (entry u s o)) (IZR a / IZR b)
  | FMeans bits u a b =>
      Means (fun s o => over bits (entry u s o)) (fun s => IZR (nth s a 0%Z) / IZR b)
  | FSupport ok => Support (fun s o => nth o (nth s ok []) true)
  | FFixed bits rows =>
      Fixed (fun s => match nth s rows None with
                      | None => None
                      | Some row => Some (fun o => over bits (nth o row 0%Z)) end)
  end.

Inductive goal_of_file :=
| FExpected (prior_bits : Z) (prior : list Z) (loss_bits : Z) (loss : list (list Z))
| FWorst (loss_bits : Z) (loss : list (list Z))
| FGuessed (bits : Z) (w : list (list Z)).

Definition goal_meant (g : goal_of_file) : goal :=
  match g with
  | FExpected a prior b loss =>
      Expected (fun s => over a (nth s prior 0%Z)) (fun s o => over b (entry loss s o))
  | FWorst b loss => Worst (fun s o => over b (entry loss s o))
  | FGuessed bits w => Guessed (length w) (fun t s => over bits (entry w t s))
  end.

(** Items of the proof of the lower bound: a place (i, j, o) and rows of whole numbers, which
    [Checker] makes inequalities of. They mean nothing either. *)
Definition item : Type := nat * nat * nat * list (list Z).

Record file := {
  secrets : nat;
  observables : nat;
  matrix_bits : Z;
  matrix : list (list Z);
  objective : goal_of_file;
  promises : list promise_of_file;
  cost_num : Z; cost_den : Z;     (* what the mechanism is said to cost at most *)
  least_num : Z; least_den : Z;   (* what every mechanism is said to cost at least *)
  goal_item : item;
  items : list (list item) }.     (* of every promise its own *)

Definition matrix_meant (f : file) (s o : nat) : R := over (matrix_bits f) (entry (matrix f) s o).

(** What a file claims, of one secret at least; its prior sums to one up to a rounding of floats
    for every secret. *)
Definition holds (f : file) : Prop :=
  (0 < secrets f)%nat /\
  optimal (secrets f) (observables f) (goal_meant (objective f)) (map meant (promises f))
    (matrix_meant f)
    (IZR (cost_num f) / IZR (cost_den f)) (IZR (least_num f) / IZR (least_den f)) /\
  proper_goal (secrets f) (observables f) (goal_meant (objective f))
    (INR (secrets f) / IZR (2 ^ 52)).

(** That no mechanism keeps all of some promises. *)
Record refutation := {
  among : nat; reported : nat; together : list promise_of_file; against : list (list item) }.

Definition holds_refutation (f : refutation) : Prop :=
  (0 < among f)%nat /\ (0 < reported f)%nat /\
  impossible (among f) (reported f) (map meant (together f)).

(** * Files about every point of a region *)

Definition place_of_file : Type := Z * Z.

(** Corners, and the rows of the coefficients: those of (d-j-k, j, k) for k = 0, j = 0 ... d first. *)
Record triangle_of_file := {
  first : place_of_file; second : place_of_file; third : place_of_file; controls : list nat }.

Fixpoint rows_before (d k : nat) : nat :=
  match k with O => O | S l => rows_before d l + (S d - l) end.
Definition position (d j k : nat) : nat := rows_before d k + j.

Definition place_meant (bits : Z) (z : place_of_file) : point := (over bits (fst z), over bits (snd z)).

Definition triangle_meant (d : nat) (bits : Z) (t : triangle_of_file) : triangle :=
  {| corner0 := place_meant bits (first t); corner1 := place_meant bits (second t);
     corner2 := place_meant bits (third t);
     row := fun _ j k => nth (position d j k) (controls t) O |}.

(** [design] is a file about the places of the prior, whose first promise are ratios of places. *)
Record everywhere_file := {
  design : file;
  epsilon : rate;
  degree : nat;
  place_bits : Z;
  triangles : list triangle_of_file;
  control_bits : Z;
  control_count : nat;
  control_rows : list (list Z);
  places : list place_of_file }.

Definition mesh_meant (f : everywhere_file) : list triangle :=
  map (triangle_meant (degree f) (place_bits f)) (triangles f).

Definition holds_everywhere (f : everywhere_file) : Prop :=
  let n := secrets (design f) in let m := observables (design f) in
  (0 < n)%nat /\
  optimal_everywhere n m (degree f) (mesh_meant f) (value (epsilon f))
    (fun s => place_meant (place_bits f) (nth s (places f) (0%Z, 0%Z)))
    (goal_meant (objective (design f))) (map meant (tl (promises (design f))))
    (fun k o => over (control_bits f) (entry (control_rows f) k o)) (matrix_meant (design f))
    (IZR (cost_num (design f)) / IZR (cost_den (design f)))
    (IZR (least_num (design f)) / IZR (least_den (design f))) /\
  proper_goal n m (goal_meant (objective (design f))) (INR n / IZR (2 ^ 52)).
