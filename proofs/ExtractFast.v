(** The checker as an OCaml program whose whole numbers are those of Zarith (GMP). What is mapped to
    Zarith is trusted: the table that comes with Coq, and the five functions below. *)

From Coq Require Import ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Optmech Require Import File Checker Everywhere.

Extract Constant Z.leb => "Big_int_Z.le_big_int".
Extract Constant Z.ltb => "Big_int_Z.lt_big_int".
Extract Constant Z.gcd => "Big_int_Z.gcd_big_int".
Extract Constant Z.pow =>
  "(fun x y -> if Big_int_Z.sign_big_int y < 0 then Big_int_Z.zero_big_int
    else Big_int_Z.power_big_int_positive_big_int x y)".
Extract Constant Z.log2 =>
  "(fun x -> if Big_int_Z.sign_big_int x <= 0 then Big_int_Z.zero_big_int
    else Big_int_Z.big_int_of_int (Z.numbits x - 1))".

Extraction "checker.ml" check is_mechanism costs keeps bound_holds proper refute
  check_everywhere mesh_fits slopes_fit place_fits ratios_follow.
