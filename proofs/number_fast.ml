(* Whole numbers of the text as those of Zarith. *)
let of_string = Big_int_Z.big_int_of_string
