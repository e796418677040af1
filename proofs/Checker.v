(** The program: it decides whether what a file claims holds. [Correct] proves that it may. *)

From Coq Require Import ZArith List Bool.
From Optmech Require Import File Exponential Rates.
Import ListNotations.
Open Scope Z_scope.

(** ** Sums over lists *)

Fixpoint dot (a b : list Z) : Z :=
  match a, b with x :: a', y :: b' => x * y + dot a' b' | _, _ => 0 end.

Definition total (a : list Z) : Z := fold_right Z.add 0 a.

Fixpoint least_of (a : list Z) : Z :=
  match a with [] => 0 | [x] => x | x :: rest => Z.min x (least_of rest) end.

Fixpoint plus_scaled (w : Z) (row sums : list Z) : list Z :=
  match row, sums with x :: row', s :: sums' => (w * x + s) :: plus_scaled w row' sums' | _, _ => [] end.

(** The sums of rows with these weights: m numbers. *)
Fixpoint mixed (m : nat) (weights : list Z) (rows : list (list Z)) : list Z :=
  match weights, rows with
  | w :: weights', row :: rows' =>
      if w =? 0 then mixed m weights' rows' else plus_scaled w row (mixed m weights' rows')
  | _, _ => repeat 0 m
  end.

Definition column (rows : list (list Z)) (o : nat) : list Z := map (fun row => nth o row 0) rows.

Definition shaped {A} (n m : nat) (t : list (list A)) : bool :=
  Nat.eqb (length t) n && forallb (fun row => Nat.eqb (length row) m) t.

Definition nonnegative (a : list Z) : bool := forallb (fun z => 0 <=? z) a.

(** ** Does a matrix keep a promise? Its entries are over 2^k. *)

(** The test of all entries of two rows that a window does not leave out. *)
Fixpoint all_seen (test : Z -> Z -> bool) (x y : list Z) (window : list bool) : bool :=
  match x, y with
  | a :: x', b :: y' =>
      (match window with false :: _ => true | _ => test a b end) &&
      all_seen test x' y' (tl window)
  | _, _ => true
  end.

Definition rows_keep (quick : Z * Z) (e : exponent) (x y : list Z) (window : list bool) : bool :=
  all_seen (at_most_power quick e) x y window.

Definition pair_fits (n : nat) (p : pair_of_lists) : bool :=
  let '(a, b, d) := p in
  Nat.eqb (length a) n && Nat.eqb (length b) n && nonnegative a && nonnegative b &&
  (0 <? total a) && (total a =? total b) && (0 <=? d).

Definition lifted_keeps (m : nat) (rows : list (list Z)) (r : rate) (bits : Z)
    (p : pair_of_lists) : bool :=
  let '(a, b, d) := p in
  let e := exponent_of r bits d in
  rows_keep (low 128 e) e (mixed m a rows) (mixed m b rows) [].

(** Σ max(0, x D - y F) *)
Fixpoint excess (f : Z * Z) (x y : list Z) : Z :=
  match x, y with
  | a :: x', b :: y' => Z.max 0 (a * snd f - b * fst f) + excess f x' y'
  | _, _ => 0
  end.

Definition approximate_keeps (m : nat) (k : Z) (rows : list (list Z)) (r : rate) (bits : Z)
    (delta_num delta_den : Z) (p : pair_of_lists) : bool :=
  let '(a, b, d) := p in
  let f := low (k + 256) (exponent_of r bits d) in
  excess f (mixed m a rows) (mixed m b rows) * delta_den <=?
  delta_num * (snd f * (total a * 2 ^ k)).

Definition guessed (w rows : list (list Z)) (o : nat) : Z :=
  let c := column rows o in least_of (map (fun costs => dot costs c) w).

Definition sum_of (m : nat) (f : nat -> Z) : Z := total (map f (seq 0 m)).

Fixpoint dots (u rows : list (list Z)) : Z :=
  match u, rows with x :: u', y :: rows' => dot x y + dots u' rows' | _, _ => 0 end.

Fixpoint zeros_outside (ok : list bool) (row : list Z) : bool :=
  match row with
  | [] => true
  | x :: row' => match ok with false :: _ => x =? 0 | _ => true end && zeros_outside (tl ok) row'
  end.

(** x / 2^k = y / 2^bits *)
Definition same_row (m : nat) (k bits : Z) (x y : list Z) : bool :=
  forallb (fun o => nth o x 0 * 2 ^ bits =? nth o y 0 * 2 ^ k) (seq 0 m).

Definition keeps (n m : nat) (k : Z) (rows : list (list Z)) (p : promise_of_file) : bool :=
  match p with
  | FRatios r bits d window =>
      rate_ok r && (0 <=? bits) &&
      forallb (fun i =>
        let row := nth i rows [] in
        let own := nth i d [] in
        let seen := nth i window [] in
        forallb (fun j =>
          match nth j own None with
          | None => true
          | Some z => (0 <=? z) &&
              (let e := exponent_of r bits z in rows_keep (low 128 e) e row (nth j rows []) seen)
          end) (seq 0 n)) (seq 0 n)
  | FLifted r bits pairs =>
      rate_ok r && (0 <=? bits) && forallb (pair_fits n) pairs &&
      forallb (lifted_keeps m rows r bits) pairs
  | FApproximate r bits pairs a b =>
      rate_ok r && (0 <=? bits) && forallb (pair_fits n) pairs && (0 <? b) &&
      forallb (approximate_keeps m k rows r bits a b) pairs
  | FAdversary bits w a b =>
      (0 <=? bits) && shaped (length w) n w && (0 <? b) && negb (Nat.eqb (length w) 0) &&
      (a * (2 ^ bits * 2 ^ k) <=? sum_of m (guessed w rows) * b)
  | FMean bits u a b =>
      (0 <=? bits) && shaped n m u && (0 <? b) && (dots u rows * b <=? a * (2 ^ bits * 2 ^ k))
  | FMeans bits u a b =>
      (0 <=? bits) && shaped n m u && (0 <? b) &&
      forallb (fun s => dot (nth s u []) (nth s rows []) * b <=? nth s a 0 * (2 ^ bits * 2 ^ k))
        (seq 0 n)
  | FSupport ok =>
      forallb (fun s => zeros_outside (nth s ok []) (nth s rows [])) (seq 0 n)
  | FFixed bits given =>
      (0 <=? bits) &&
      forallb (fun s => match nth s given None with
                        | None => true
                        | Some row => same_row m k bits (nth s rows []) row end) (seq 0 n)
  end.

Definition is_mechanism (n m : nat) (k : Z) (rows : list (list Z)) : bool :=
  (0 <=? k) && shaped n m rows &&
  forallb (fun row => nonnegative row && (total row =? 2 ^ k)) rows.

(** ** Does it cost at most x? *)

Definition costs (n m : nat) (k : Z) (rows : list (list Z)) (g : goal_of_file) (x y : Z) : bool :=
  (0 <? y) &&
  match g with
  | FExpected a prior b loss =>
      (0 <=? a) && (0 <=? b) && Nat.eqb (length prior) n && shaped n m loss &&
      (dot prior (map (fun s => dot (nth s loss []) (nth s rows [])) (seq 0 n)) * y <=?
       x * (2 ^ a * 2 ^ b * 2 ^ k))
  | FWorst b loss =>
      (0 <=? b) && shaped n m loss &&
      forallb (fun s => dot (nth s loss []) (nth s rows []) * y <=? x * (2 ^ b * 2 ^ k)) (seq 0 n)
  | FGuessed bits w =>
      (0 <=? bits) && shaped (length w) n w && negb (Nat.eqb (length w) 0) &&
      (- sum_of m (guessed w rows) * y <=? x * (2 ^ bits * 2 ^ k))
  end.

(** ** The lower bound

    An inequality Σ v P[s,o] + c <= 0 that mechanisms with the promise satisfy: its terms
    (s, o, v) and c. Each item of the multipliers gives one; an item is a place and rows of whole
    numbers. *)

Definition term_of : Type := nat * nat * Z.
Definition inequality : Type := list term_of * Z.

Definition factor_bits : Z := 192.

(** z (P[i,o] 2^w - F P[j,o]) <= 0 *)
Definition of_ratio (r : rate) (bits : Z) (d : list (list (option Z))) (window : list (list bool))
    (it : item) : option inequality :=
  let '(i, j, o, values) := it in
  match nth j (nth i d []) None, values with
  | Some z, [[v]] =>
      if (0 <=? v) && (0 <=? z) && nth o (nth i window []) true then
        match high factor_bits (exponent_of r bits z) with
        | None => None
        | Some F => Some ([(i, o, v * 2 ^ factor_bits); (j, o, - (v * F))], 0)
        end
      else None
  | _, _ => None
  end.

(** The terms v w_s at (s, o), s = from, from + 1, ..., of weights that are not 0. *)
Fixpoint spread (from o : nat) (v : Z) (weights : list Z) (rest : list term_of) : list term_of :=
  match weights with
  | [] => rest
  | w :: more =>
      let rest' := spread (S from) o v more rest in
      if w =? 0 then rest' else (from, o, v * w) :: rest'
  end.

(** z (a 2^w - F b) at column o *)
Definition of_lifted (n : nat) (r : rate) (bits : Z) (pairs : list pair_of_lists)
    (it : item) : option inequality :=
  let '(q, _, o, values) := it in
  match nth_error pairs q, values with
  | Some (a, b, d), [[v]] =>
      if (0 <=? v) && pair_fits n (a, b, d) then
        match high factor_bits (exponent_of r bits d) with
        | None => None
        | Some F =>
            Some (spread 0 o (v * 2 ^ factor_bits) a (spread 0 o (- (v * F)) b []), 0)
        end
      else None
  | _, _ => None
  end.

(** Tests 0 <= t_o <= y: Σ_o t_o (a 2^w - F b) δ_den - y δ_num 2^w Σa <= 0 *)
Fixpoint of_tests (o : nat) (one F : Z) (a b : list Z) (tests : list Z) : list term_of :=
  match tests with
  | [] => []
  | t :: more =>
      if t =? 0 then of_tests (S o) one F a b more
      else spread 0 o (t * one) a (spread 0 o (- (t * F)) b (of_tests (S o) one F a b more))
  end.

Definition of_approximate (n m : nat) (r : rate) (bits : Z) (pairs : list pair_of_lists)
    (delta_num delta_den : Z) (it : item) : option inequality :=
  let '(q, _, _, values) := it in
  match nth_error pairs q, values with
  | Some (a, b, d), [[y]; tests] =>
      if pair_fits n (a, b, d) && (0 <? delta_den) && Nat.eqb (length tests) m &&
         forallb (fun t => (0 <=? t) && (t <=? y)) tests && (0 <=? y) then
        match high factor_bits (exponent_of r bits d) with
        | None => None
        | Some F =>
            Some (of_tests 0 (2 ^ factor_bits * delta_den) (F * delta_den) a b tests,
                  - (y * delta_num * 2 ^ factor_bits * total a))
        end
      else None
  | _, _ => None
  end.

(** Guesses g_ot >= 0 with sum G for every o: -Σ g_ot w_ts P[s,o] scale <= -G d *)
Fixpoint of_guesses (o : nat) (scale : Z) (w : list (list Z)) (g : list Z) (rest : list term_of)
    : list term_of :=
  match w, g with
  | costs :: w', v :: g' =>
      let rest' := of_guesses o scale w' g' rest in
      if v =? 0 then rest' else spread 0 o (- (v * scale)) costs rest'
  | _, _ => rest
  end.

Fixpoint of_strategy (o : nat) (scale : Z) (w : list (list Z)) (g : list (list Z))
    : list term_of :=
  match g with
  | [] => []
  | own :: more => of_guesses o scale w own (of_strategy (S o) scale w more)
  end.

Definition strategy_fits (m : nat) (w : list (list Z)) (G : Z) (g : list (list Z)) : bool :=
  (0 <=? G) && shaped m (length w) g &&
  forallb (fun own => nonnegative own && (total own =? G)) g.

Definition of_adversary (n m : nat) (bits : Z) (w : list (list Z)) (a b : Z)
    (it : item) : option inequality :=
  let '(_, _, _, values) := it in
  match values with
  | [G] :: g =>
      if (0 <=? bits) && (0 <? b) && shaped (length w) n w && strategy_fits m w G g then
        Some (of_strategy 0 b w g, G * a * 2 ^ bits)
      else None
  | _ => None
  end.

(** The terms scale u_o at (s, o), o = from, ... *)
Fixpoint along (s from : nat) (scale : Z) (u : list Z) (rest : list term_of) : list term_of :=
  match u with
  | [] => rest
  | x :: more =>
      let rest' := along s (S from) scale more rest in
      if x =? 0 then rest' else (s, from, scale * x) :: rest'
  end.

Fixpoint along_rows (from : nat) (scales : list Z) (u : list (list Z)) : list term_of :=
  match scales, u with
  | v :: scales', row :: u' => along from 0 v row (along_rows (S from) scales' u')
  | _, _ => []
  end.

Definition of_mean (n m : nat) (bits : Z) (u : list (list Z)) (a b : Z)
    (it : item) : option inequality :=
  let '(_, _, _, values) := it in
  match values with
  | [[v]] =>
      if (0 <=? v) && (0 <=? bits) && (0 <? b) && shaped n m u then
        Some (along_rows 0 (repeat (v * b) n) u, - (v * a * 2 ^ bits))
      else None
  | _ => None
  end.

Definition of_means (n m : nat) (bits : Z) (u : list (list Z)) (a : list Z) (b : Z)
    (it : item) : option inequality :=
  let '(s, _, _, values) := it in
  match values with
  | [[v]] =>
      if (0 <=? v) && (0 <=? bits) && (0 <? b) && shaped n m u && Nat.ltb s n then
        Some (along s 0 (v * b) (nth s u []) [], - (v * nth s a 0 * 2 ^ bits))
      else None
  | _ => None
  end.

(** Outside a support any multiple of P[s,o] is 0. *)
Definition of_support (ok : list (list bool)) (it : item) : option inequality :=
  let '(s, _, o, values) := it in
  match values with
  | [[v]] => if nth o (nth s ok []) true then None else Some ([(s, o, v)], 0)
  | _ => None
  end.

(** And of P[s,o] - R[s,o], where row s is given. *)
Definition of_fixed (bits : Z) (rows : list (option (list Z))) (it : item) : option inequality :=
  let '(s, _, o, values) := it in
  match values, nth s rows None with
  | [[v]], Some row => Some ([(s, o, v * 2 ^ bits)], - (v * nth o row 0))
  | _, _ => None
  end.

Definition inequality_of (n m : nat) (p : promise_of_file) (it : item) : option inequality :=
  match p with
  | FRatios r bits d window => of_ratio r bits d window it
  | FLifted r bits pairs => of_lifted n r bits pairs it
  | FApproximate r bits pairs a b => of_approximate n m r bits pairs a b it
  | FAdversary bits w a b => of_adversary n m bits w a b it
  | FMean bits u a b => of_mean n m bits u a b it
  | FMeans bits u a b => of_means n m bits u a b it
  | FSupport ok => of_support ok it
  | FFixed bits rows => of_fixed bits rows it
  end.

(** Terms of the objective, and what its value is multiplied by in them. *)
Definition objective_of (n m : nat) (g : goal_of_file) (it : item) : option inequality :=
  let '(_, _, _, values) := it in
  match g, values with
  | FExpected a prior b loss, [[v]] =>
      if 0 <? v then
        Some (along_rows 0 (map (Z.mul v) prior) loss, v * (2 ^ a * 2 ^ b))
      else None
  | FWorst b loss, [weights] =>
      if nonnegative weights && Nat.eqb (length weights) n && (0 <? total weights) then
        Some (along_rows 0 weights loss, total weights * 2 ^ b)
      else None
  | FGuessed bits w, [G] :: g =>
      if (0 <? G) && strategy_fits m w G g then
        Some (of_strategy 0 1 w g, G * 2 ^ bits)
      else None
  | _, _ => None
  end.

(** A table and a number that terms are added to. *)
Fixpoint add_at (row : list Z) (o : nat) (v : Z) : list Z :=
  match row, o with
  | x :: rest, O => (x + v) :: rest
  | x :: rest, S o' => x :: add_at rest o' v
  | [], _ => []
  end.

Fixpoint add_to (t : list (list Z)) (s o : nat) (v : Z) : list (list Z) :=
  match t, s with
  | row :: rest, O => add_at row o v :: rest
  | row :: rest, S s' => row :: add_to rest s' o v
  | [], _ => []
  end.

Definition add_term (t : list (list Z)) (u : term_of) : list (list Z) :=
  let '(s, o, v) := u in add_to t s o v.

Definition inside (n m : nat) (u : term_of) : bool :=
  let '(s, o, _) := u in Nat.ltb s n && Nat.ltb o m.

Definition sums : Type := list (list Z) * Z.

Definition add_item (n m : nat) (p : promise_of_file) (t : option sums) (it : item) : option sums :=
  match t, inequality_of n m p it with
  | Some (table, constant), Some (terms, c) =>
      if forallb (inside n m) terms
      then Some (fold_left add_term terms table, constant + c) else None
  | _, _ => None
  end.

Fixpoint add_promises (n m : nat) (ps : list promise_of_file) (items : list (list item))
    (t : option sums) : option sums :=
  match ps, items with
  | p :: ps', own :: items' => add_promises n m ps' items' (fold_left (add_item n m p) own t)
  | _, _ => t
  end.

Definition rates_ok (p : promise_of_file) : bool :=
  match p with
  | FRatios r bits _ _ | FLifted r bits _ | FApproximate r bits _ _ _ => rate_ok r && (0 <=? bits)
  | FFixed bits _ => 0 <=? bits
  | _ => true
  end.

Definition bound_holds (f : file) : bool :=
  let n := secrets f in
  let m := observables f in
  (0 <? least_den f) && negb (Nat.eqb m 0) && forallb rates_ok (promises f) &&
  match objective_of n m (objective f) (goal_item f) with
  | None => false
  | Some (terms, scale) =>
      forallb (inside n m) terms && (0 <? scale) &&
      match add_promises n m (promises f) (items f)
              (Some (fold_left add_term terms (repeat (repeat 0 m) n), 0)) with
      | None => false
      | Some (table, constant) =>
          least_num f * scale <=? (total (map least_of table) + constant) * least_den f
      end
  end.

(** Is the goal as it should be? *)
Definition proper (f : file) : bool :=
  match objective f with
  | FExpected a prior b loss =>
      nonnegative prior && forallb nonnegative loss &&
      (Z.abs (total prior - 2 ^ a) * 2 ^ 52 <=? Z.of_nat (secrets f) * 2 ^ a)
  | FWorst b loss => forallb nonnegative loss
  | FGuessed bits w => true
  end.

Definition check (f : file) : bool :=
  is_mechanism (secrets f) (observables f) (matrix_bits f) (matrix f) &&
  costs (secrets f) (observables f) (matrix_bits f) (matrix f) (objective f)
    (cost_num f) (cost_den f) &&
  forallb (keeps (secrets f) (observables f) (matrix_bits f) (matrix f)) (promises f) &&
  bound_holds f && proper f && Nat.ltb 0 (secrets f).

(** The same inequalities without an objective: they add up to something that is above 0, and at
    most 0. *)
Definition refute (f : refutation) : bool :=
  let n := among f in
  let m := reported f in
  Nat.ltb 0 n && Nat.ltb 0 m && forallb rates_ok (together f) &&
  match add_promises n m (together f) (against f) (Some (repeat (repeat 0 m) n, 0)) with
  | None => false
  | Some (table, constant) => 0 <? total (map least_of table) + constant
  end.
