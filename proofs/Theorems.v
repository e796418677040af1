(** What is proved, and what it rests on: the build prints the end of this file. *)

From Optmech Require Import Definitions File Checker Correct Everywhere.

(** A design for finitely many secrets; that nothing keeps some promises; a design for every point
    of a region. *)
Check correct : forall f, check f = true -> holds f.
Check refuted : forall f, refute f = true -> holds_refutation f.
Check everywhere : forall f, check_everywhere f = true -> holds_everywhere f.

Definition all := (correct, refuted, everywhere).
Print Assumptions all.
