(** What is proved, in the words of mathematics. Nothing here mentions files or programs.

    Secrets are the numbers 0 ... n-1, observables 0 ... m-1, and [P s o] is the probability that a
    mechanism reports [o] when the secret is [s]. Numbers are Coq's real numbers, [exp] is the real
    exponential function and [ln] the natural logarithm. *)

From Coq Require Import Reals List.
Open Scope R_scope.

(** f 0 + ... + f (k-1) *)
Fixpoint sum (k : nat) (f : nat -> R) : R :=
  match k with O => 0 | S j => sum j f + f j end.

(** The least of f 0, ..., f (k-1); 0 where k is 0. *)
Fixpoint least (k : nat) (f : nat -> R) : R :=
  match k with O => 0 | S O => f O | S j => Rmin (least j f) (f j) end.

(** A mechanism: for every secret a distribution of reports. *)
Definition mechanism (n m : nat) (P : nat -> nat -> R) : Prop :=
  forall s, (s < n)%nat -> (forall o, (o < m)%nat -> 0 <= P s o) /\ sum m (P s) = 1.

(** What is reported when the secret is drawn with probabilities [a]. *)
Definition pushed (n : nat) (a : nat -> R) (P : nat -> nat -> R) (o : nat) : R :=
  sum n (fun s => a s * P s o).

(** Promises. [Ratios limit seen]: differential privacy has the limit ε for all pairs of neighbours,
    metric privacy ε d(i,j); [None] leaves a pair free, and a ratio counts where [seen i o].
    [Lifted]: the same for distributions over the secrets. [Approximate]: with a δ.
    [Adversary k w d]: whoever sees the report and makes the best of k guesses errs by at least d;
    [w t s] is the prior of s times what guess t costs there. [Mean]: an expectation is at most q.
    [Means]: that of every secret. [Support ok]: what is not allowed is never reported. [Fixed rows]: some secrets have
    given rows. *)
Inductive promise :=
| Ratios (limit : nat -> nat -> option R) (seen : nat -> nat -> bool)
| Lifted (pairs : list ((nat -> R) * (nat -> R) * R))
| Approximate (pairs : list ((nat -> R) * (nat -> R) * R)) (delta : R)
| Adversary (k : nat) (w : nat -> nat -> R) (d : R)
| Mean (u : nat -> nat -> R) (q : R)
| Means (u : nat -> nat -> R) (q : nat -> R)
| Support (ok : nat -> nat -> bool)
| Fixed (rows : nat -> option (nat -> R)).

Definition kept (n m : nat) (P : nat -> nat -> R) (p : promise) : Prop :=
  match p with
  | Ratios limit seen =>
      forall i j o r, (i < n)%nat -> (j < n)%nat -> (o < m)%nat ->
      limit i j = Some r -> seen i o = true -> P i o <= exp r * P j o
  | Lifted pairs =>
      forall a b r, In (a, b, r) pairs ->
      forall o, (o < m)%nat -> pushed n a P o <= exp r * pushed n b P o
  | Approximate pairs delta =>
      forall a b r, In (a, b, r) pairs ->
      sum m (fun o => Rmax 0 (pushed n a P o - exp r * pushed n b P o)) <= delta
  | Adversary k w d =>
      d <= sum m (fun o => least k (fun t => sum n (fun s => w t s * P s o)))
  | Mean u q => sum n (fun s => sum m (fun o => u s o * P s o)) <= q
  | Means u q => forall s, (s < n)%nat -> sum m (fun o => u s o * P s o) <= q s
  | Support ok =>
      forall s o, (s < n)%nat -> (o < m)%nat -> ok s o = false -> P s o = 0
  | Fixed rows =>
      forall s o row, (s < n)%nat -> (o < m)%nat -> rows s = Some row -> P s o = row o
  end.

(** What is to be small. [Expected]: prior(s) c(s,o) on average. [Worst]: the largest of the
    losses of the secrets, which is at most x where all of them are. [Guessed]: minus what the
    best guesses err by. *)
Inductive goal :=
| Expected (prior : nat -> R) (c : nat -> nat -> R)
| Worst (c : nat -> nat -> R)
| Guessed (k : nat) (w : nat -> nat -> R).

Definition at_most (n m : nat) (g : goal) (P : nat -> nat -> R) (x : R) : Prop :=
  match g with
  | Expected prior c => sum n (fun s => prior s * sum m (fun o => c s o * P s o)) <= x
  | Worst c => forall s, (s < n)%nat -> sum m (fun o => c s o * P s o) <= x
  | Guessed k w => - sum m (fun o => least k (fun t => sum n (fun s => w t s * P s o))) <= x
  end.

(** A goal as it should be: a prior of numbers >= 0 whose sum is one up to [slack], losses >= 0. *)
Definition proper_goal (n m : nat) (g : goal) (slack : R) : Prop :=
  match g with
  | Expected prior c =>
      (forall s, (s < n)%nat -> 0 <= prior s) /\ Rabs (sum n prior - 1) <= slack /\
      (forall s o, (s < n)%nat -> (o < m)%nat -> 0 <= c s o)
  | Worst c => forall s o, (s < n)%nat -> (o < m)%nat -> 0 <= c s o
  | Guessed _ _ => True
  end.

(** [x] is a lower bound: whatever mechanism keeps all promises costs at least x. *)
Definition lower_bound (n m : nat) (g : goal) (promises : list promise) (x : R) : Prop :=
  forall Q, mechanism n m Q -> (forall p, In p promises -> kept n m Q p) ->
  forall y, at_most n m g Q y -> x <= y.

(** A mechanism that keeps all promises and costs at most [x], where none costs less than [y]. *)
Definition optimal (n m : nat) (g : goal) (promises : list promise)
    (P : nat -> nat -> R) (x y : R) : Prop :=
  mechanism n m P /\ (forall p, In p promises -> kept n m P p) /\
  at_most n m g P x /\ lower_bound n m g promises y.

(** No mechanism keeps all of these promises. *)
Definition impossible (n m : nat) (promises : list promise) : Prop :=
  forall Q, mechanism n m Q -> ~ (forall p, In p promises -> kept n m Q p).

(** * Everywhere: mechanisms on a region of the plane *)

Definition point : Type := R * R.

Definition apart (z w : point) : R := sqrt ((fst z - fst w) ^ 2 + (snd z - snd w) ^ 2).

(** De Casteljau: the polynomial of degree d with coefficients f at the weights a, b, c; in degree 1
    the mean a f(1,0,0) + b f(0,1,0) + c f(0,0,1). *)
Fixpoint blend (d : nat) (f : nat -> nat -> nat -> R) (a b c : R) : R :=
  match d with
  | O => f O O O
  | S e => a * blend e (fun i j k => f (S i) j k) a b c +
           b * blend e (fun i j k => f i (S j) k) a b c +
           c * blend e (fun i j k => f i j (S k)) a b c
  end.

(** Three corners, and the row of a matrix that each coefficient is taken from. *)
Record triangle := { corner0 : point; corner1 : point; corner2 : point;
                     row : nat -> nat -> nat -> nat }.

(** The point lies in the triangle, where it has the weights a, b, c. *)
Definition lies (t : triangle) (z : point) (a b c : R) : Prop :=
  0 <= a /\ 0 <= b /\ 0 <= c /\ a + b + c = 1 /\
  fst z = a * fst (corner0 t) + b * fst (corner1 t) + c * fst (corner2 t) /\
  snd z = a * snd (corner0 t) + b * snd (corner1 t) + c * snd (corner2 t).

Definition in_region (mesh : list triangle) (z : point) : Prop :=
  exists t a b c, In t mesh /\ lies t z a b c.

(** From the point z of a mesh the mechanism with rows P reports o with probability v. *)
Definition reports (d : nat) (mesh : list triangle) (P : nat -> nat -> R) (z : point) (o : nat)
    (v : R) : Prop :=
  exists t a b c, In t mesh /\ lies t z a b c /\
    v = blend d (fun i j k => P (row t i j k) o) a b c.

(** Privacy at every point: of any two points of a region, whatever the distance between them. *)
Definition private (region : point -> Prop) (m : nat) (eps : R) (q : point -> nat -> R) : Prop :=
  forall z w o, region z -> region w -> (o < m)%nat -> q z o <= exp (eps * apart z w) * q w o.

(** What a design for every point is: [P] has a row for every coefficient, [Q] for every place of
    the prior. *)
Definition optimal_everywhere (n m d : nat) (mesh : list triangle) (eps : R) (place : nat -> point)
    (g : goal) (promises : list promise) (P Q : nat -> nat -> R) (x y : R) : Prop :=
  (* from every point of the region a distribution is reported *)
  (forall t z a b c, In t mesh -> lies t z a b c ->
    let p o := blend d (fun i j k => P (row t i j k) o) a b c in
    (forall o, (o < m)%nat -> 0 <= p o) /\ sum m p = 1) /\
  (* which is private at every point; with z = w it is one distribution for every point *)
  (forall z w o v u, (o < m)%nat -> reports d mesh P z o v -> reports d mesh P w o u ->
    v <= exp (eps * apart z w) * u) /\
  (* at the places it is Q, which keeps all promises and costs at most x *)
  (forall s, (s < n)%nat -> in_region mesh (place s) /\
    forall o, (o < m)%nat -> reports d mesh P (place s) o (Q s o)) /\
  mechanism n m Q /\ (forall p, In p promises -> kept n m Q p) /\ at_most n m g Q x /\
  (* and nothing that is private at every point and keeps the promises costs less than y *)
  (forall q : point -> nat -> R,
    (forall z, in_region mesh z -> (forall o, (o < m)%nat -> 0 <= q z o) /\ sum m (q z) = 1) ->
    private (in_region mesh) m eps q ->
    (forall p, In p promises -> kept n m (fun s => q (place s)) p) ->
    forall c, at_most n m g (fun s => q (place s)) c -> y <= c).
