(* Whole numbers of the text as those of Coq, digit by digit. *)
open Checker

let small =
  let rec positive k =
    if k = 1 then XH else if k mod 2 = 0 then XO (positive (k / 2)) else XI (positive (k / 2)) in
  Array.init 11 (fun k -> if k = 0 then Z0 else Zpos (positive k))

let of_string text =
  let negative = text.[0] = '-' in
  let value = ref Z0 in
  String.iteri (fun k c ->
    if not (negative && k = 0) then
      value := Z.add (Z.mul !value small.(10)) small.(Char.code c - 48)) text;
  if negative then Z.opp !value else !value
