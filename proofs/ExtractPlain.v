(** The checker as an OCaml program whose whole numbers are Coq's own: nothing is mapped but truth
    values, pairs, options and lists. Slow, and without trust in a library. *)

From Coq Require Import ZArith Extraction ExtrOcamlBasic.
From Optmech Require Import File Checker Everywhere.

Extraction "checker.ml" check is_mechanism costs keeps bound_holds proper refute
  check_everywhere mesh_fits slopes_fit place_fits ratios_follow.
