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
