(* Reads a file, asks the checker that Coq proved, and prints what was proved. What stands here is
   not proved: it turns text into numbers, and numbers into text.

   Status 0: what the file claims holds. 1: refused. 2: not read, or of a kind that is not covered. *)

module C = Checker
module N = Number

exception Unread of string

let unread place message = raise (Unread (Printf.sprintf "line %d: %s" place message))

(* Words of a text, and the lines that they stand on. *)
type source = { text : string; mutable at : int; mutable line : int }

let blank c = c = ' ' || c = '\n'

let skip s =
  while s.at < String.length s.text && blank s.text.[s.at] do
    if s.text.[s.at] = '\n' then s.line <- s.line + 1;
    s.at <- s.at + 1
  done

let word s =
  skip s;
  let start = s.at in
  while s.at < String.length s.text && not (blank s.text.[s.at]) do s.at <- s.at + 1 done;
  if s.at = start then unread s.line "the file ends too early";
  String.sub s.text start (s.at - start)

let rest_of_line s =
  let stop = try String.index_from s.text s.at '\n' with Not_found -> unread s.line "no end of line" in
  let found = String.sub s.text s.at (stop - s.at) in
  s.at <- stop + 1;
  s.line <- s.line + 1;
  found

let expect s wanted =
  let found = word s in
  if found <> wanted then unread s.line (Printf.sprintf "%S stands where %S must" found wanted)

let digits text from =
  let size = String.length text - from in
  let rec all k = k = String.length text || (text.[k] >= '0' && text.[k] <= '9' && all (k + 1)) in
  size > 0 && all from && (size = 1 || text.[from] <> '0')

let number_of s text =
  let negative = text.[0] = '-' in
  if not (digits text (if negative then 1 else 0)) || text = "-0" then
    unread s.line (Printf.sprintf "%S is no whole number" text);
  N.of_string text

let number s = number_of s (word s)

let count s =
  let text = word s in
  if not (digits text 0) || String.length text > 7 then
    unread s.line (Printf.sprintf "%S is no number of things below ten millions" text);
  int_of_string text

(* Bits behind the point: two to them is computed. *)
let bits_below digits_of s =
  let text = word s in
  if not (digits text 0) || String.length text > digits_of then
    unread s.line (Printf.sprintf "%S is no number of bits, or too many" text);
  N.of_string text

let bits = bits_below 6

let nats = ref [| C.O |]

let nat_of k =
  let known = Array.length !nats in
  if k >= known then begin
    let more = Array.make (2 * k + 1) C.O in
    Array.blit !nats 0 more 0 known;
    for j = known to 2 * k do more.(j) <- C.S more.(j - 1) done;
    nats := more
  end;
  !nats.(k)

let nat s = nat_of (count s)

let many k f =
  let rec go k found = if k = 0 then List.rev found else go (k - 1) (f () :: found) in
  go k []

let numbers s k = many k (fun () -> number s)
let table s n m = many n (fun () -> numbers s m)

let truth s =
  match word s with
  | "0" -> false
  | "1" -> true
  | other -> unread s.line (Printf.sprintf "%S is neither 0 nor 1" other)

let mask s n m = many n (fun () -> many m (fun () -> truth s))

(* What is printed of a promise, beside what is checked of it. *)
type shown = { words : string }

let fraction a b =
  let near = float_of_string a /. float_of_string b in
  if b = "1" then a
  else if Float.is_finite near && String.length a + String.length b > 20 then
    Printf.sprintf "%s/%s, about %.17g" a b near
  else a ^ "/" ^ b

let rate s =
  expect s "rate";
  let a = word s in
  let b = word s in
  let num = number_of s a and den = number_of s b in
  match word s with
  | "plain" -> ({ C.num; den; log = None }, fraction a b)
  | "log" ->
      let c = word s in
      let d = word s in
      let log_num = number_of s c and log_den = number_of s d in
      let log_low = number s in
      let log_high = number s in
      let log_bits = bits_below 4 s in
      ( { C.num; den; log = Some { C.log_num; log_den; log_low; log_high; log_bits } },
        (if (a, b) = ("1", "1") then "" else fraction a b ^ " ") ^ "ln " ^ fraction c d )
  | other -> unread s.line (Printf.sprintf "%S stands where \"plain\" or \"log\" must" other)

let distance s =
  let text = word s in
  if text = "-" then None else Some (number_of s text)

let pairs s n =
  expect s "pairs";
  let bits = bits s in
  let k = count s in
  ( bits,
    many k (fun () ->
        let d = number s in
        let a = numbers s n in
        let b = numbers s n in
        ((a, b), d)) )

let guesses s n =
  expect s "guesses";
  let k = count s in
  let bits = bits s in
  (bits, table s k n)

let tables s name n m =
  expect s name;
  let bits = bits s in
  (bits, table s n m)

let promise s n m =
  match word s with
  | "ratios" ->
      let r, words = rate s in
      expect s "distances";
      let bits = bits s in
      let d = many n (fun () -> many n (fun () -> distance s)) in
      expect s "window";
      let window =
        match word s with
        | "all" -> []
        | "some" -> mask s n m
        | other -> unread s.line (Printf.sprintf "%S is no window" other)
      in
      let stated row = List.length (List.filter (fun z -> z <> None) row) in
      let pairs = List.fold_left (fun sum row -> sum + stated row) 0 d in
      let places = if window = [] then "all observables" else "the observables of a window" in
      ( C.FRatios (r, bits, d, window),
        { words =
            Printf.sprintf "p(o|s) <= e^(r d(s,s')) p(o|s') for r = %s, %d pairs and %s" words pairs
              places } )
  | "lifted" ->
      let r, words = rate s in
      let bits, given = pairs s n in
      ( C.FLifted (r, bits, given),
        { words =
            Printf.sprintf
              "p(o) <= e^(r d) p'(o) for r = %s and %d pairs of distributions over secrets" words
              (List.length given) } )
  | "approximate" ->
      let r, words = rate s in
      expect s "delta";
      let a = word s in
      let b = word s in
      let bits, given = pairs s n in
      ( C.FApproximate (r, bits, given, number_of s a, number_of s b),
        { words =
            Printf.sprintf
              "sum of max(0, p(o) - e^(r d) p'(o)) <= %s for r = %s and %d pairs of distributions"
              (fraction a b) words (List.length given) } )
  | "adversary" ->
      expect s "least";
      let a = word s in
      let b = word s in
      let bits, w = guesses s n in
      ( C.FAdversary (bits, w, number_of s a, number_of s b),
        { words =
            Printf.sprintf "whoever sees the report and makes the best of %d guesses errs by >= %s"
              (List.length w) (fraction a b) } )
  | "mean" ->
      expect s "most";
      let a = word s in
      let b = word s in
      let bits, u = tables s "costs" n m in
      ( C.FMean (bits, u, number_of s a, number_of s b),
        { words = Printf.sprintf "a stated expectation is <= %s" (fraction a b) } )
  | "means" ->
      expect s "most";
      let den = number s in
      let most = numbers s n in
      let bits, u = tables s "costs" n m in
      ( C.FMeans (bits, u, most, den),
        { words = "stated expectations of every secret are at most what is stated for it" } )
  | "support" ->
      let ok = mask s n m in
      (C.FSupport ok, { words = "nothing is reported outside the stated support" })
  | "fixed" ->
      let bits = bits s in
      let row () =
        match word s with
        | "-" -> None
        | "row" -> Some (numbers s m)
        | other -> unread s.line (Printf.sprintf "%S is no row" other)
      in
      let rows = many n row in
      let count = List.length (List.filter (fun row -> row <> None) rows) in
      ( C.FFixed (bits, rows),
        { words = Printf.sprintf "%d rows are those that are given, digit by digit" count } )
  | other ->
      unread s.line
        (Printf.sprintf "a promise of the kind %S, which this checker does not cover" other)

let objective s n m =
  match word s with
  | "expected" ->
      expect s "prior";
      let a = bits s in
      let prior = numbers s n in
      let b, loss = tables s "loss" n m in
      (C.FExpected (a, prior, b, loss), "expected loss")
  | "worst" ->
      let b, loss = tables s "loss" n m in
      (C.FWorst (b, loss), "largest loss of a secret")
  | "guessed" ->
      let bits, w = guesses s n in
      (C.FGuessed (bits, w), "minus the least error of a guess")
  | other ->
      unread s.line
        (Printf.sprintf "an objective of the kind %S, which this checker does not cover" other)

let item s =
  let i = nat s in
  let j = nat s in
  let o = nat s in
  let rows = count s in
  let values = many rows (fun () -> let k = count s in numbers s k) in
  (((i, j), o), values)

type body =
  | Design of C.file
  | Everywhere of C.everywhere_file * string
  | Refutation of C.refutation

type document = {
  digest : string;
  said : string list;
  body : body;
  promised : shown list;
  goal : string;
  claims : (string * string) * (string * string);
}

let promises s n m =
  let k = count s in
  many k (fun () -> promise s n m)

let items s k =
  many k (fun () -> expect s "items"; let k = count s in many k (fun () -> item s))

(* Where a number over 2^bits lies, about: for what is printed. *)
let about bits text = Float.ldexp (float_of_string text) (- (int_of_string bits))

let everywhere s design n m =
  let epsilon, words = rate s in
  expect s "degree";
  let degree = count s in
  if degree > 9 then unread s.line "a degree above 9";
  expect s "coordinates";
  let text = word s in
  let place_bits = bits { text; at = 0; line = s.line } in
  let box = ref (infinity, infinity, neg_infinity, neg_infinity) in
  let place () =
    let x = word s in
    let y = word s in
    (x, y), (number_of s x, number_of s y)
  in
  let corner () =
    let (x, y), found = place () in
    let x = about text x and y = about text y in
    let (a, b, c, d) = !box in
    box := (min a x, min b y, max c x, max d y);
    found
  in
  expect s "triangles";
  let k = count s in
  let each = (degree + 1) * (degree + 2) / 2 in
  let triangle () =
    let first = corner () in
    let second = corner () in
    let third = corner () in
    { C.first; second; third; controls = many each (fun () -> nat s) }
  in
  let triangles = many k triangle in
  expect s "rows";
  let rows = count s in
  let control_bits, control_rows = tables s "matrix" rows m in
  expect s "places";
  let places = many n (fun () -> snd (place ())) in
  let (a, b, c, d) = !box in
  ( { C.design; epsilon; degree = nat_of degree; place_bits; triangles; control_bits;
      control_count = nat_of rows; control_rows; places },
    Printf.sprintf
      "p(o|x) <= e^(r |x-y|) p(o|y) for r = %s and all points x, y of a region, %d triangles \
       between (%g, %g) and (%g, %g)" words k a b c d )

let read text =
  let s = { text; at = 0; line = 1 } in
  expect s "optmech-checked";
  let version = word s in
  if version <> "1" then unread 1 (Printf.sprintf "version %S, and this checker reads 1" version);
  expect s "design";
  let digest = word s in
  expect s "words";
  let k = count s in
  let behind = rest_of_line s in
  if String.exists (fun c -> c <> ' ') behind then
    unread (s.line - 1) (Printf.sprintf "%S stands behind the number of words" behind);
  let said = many k (fun () -> rest_of_line s) in
  expect s "size";
  let n = count s in
  let m = count s in
  let last found =
    expect s "end";
    skip s;
    if s.at <> String.length text then unread s.line "more after the end";
    found
  in
  match word s with
  | "infeasible" ->
      expect s "promises";
      let stated = promises s n m in
      expect s "proof";
      let against = items s (List.length stated) in
      last
        { digest; said; promised = List.map snd stated; goal = ""; claims = (("0", "1"), ("0", "1"));
          body = Refutation
            { C.among = nat_of n; reported = nat_of m; together = List.map fst stated; against } }
  | "matrix" ->
      let matrix_bits = bits s in
      let matrix = table s n m in
      expect s "objective";
      let objective, goal = objective s n m in
      expect s "promises";
      let stated = promises s n m in
      let claim name =
        expect s name;
        let a = word s in
        let b = word s in
        ((a, b), (number_of s a, number_of s b))
      in
      let cost, (cost_num, cost_den) = claim "cost" in
      let least, (least_num, least_den) = claim "least" in
      expect s "proof";
      let goal_item = item s in
      let items = items s (List.length stated) in
      let file =
        { C.secrets = nat_of n; observables = nat_of m; matrix_bits; matrix; objective;
          promises = List.map fst stated; cost_num; cost_den; least_num; least_den; goal_item;
          items }
      in
      let body =
        match word s with
        | "end" -> s.at <- s.at - 3; Design file
        | "everywhere" -> let found, words = everywhere s file n m in Everywhere (found, words)
        | other -> unread s.line (Printf.sprintf "%S stands where \"end\" must" other)
      in
      last { digest; said; body; promised = List.map snd stated; goal; claims = (cost, least) }
  | other -> unread s.line (Printf.sprintf "%S stands where \"matrix\" must" other)

(* Which part of the check fails: [C.check] and its two brothers alone decide. *)
let reason_of_design f =
  let n = f.C.secrets and m = f.C.observables and k = f.C.matrix_bits and rows = f.C.matrix in
  let rec first k = function
    | [] -> "the prior or a loss is none, or there are no secrets"
    | p :: more -> if C.keeps n m (f.C.matrix_bits) rows p then first (k + 1) more
        else Printf.sprintf "promise %d is not kept" k
  in
  if not (C.is_mechanism n m k rows) then "a row of the matrix is no distribution"
  else if not (C.costs n m k rows f.C.objective f.C.cost_num f.C.cost_den) then
    "it costs more than is stated"
  else if List.exists (fun p -> not (C.keeps n m k rows p)) f.C.promises then first 0 f.C.promises
  else if not (C.bound_holds f) then "the lower bound is not proved"
  else first 0 []

let seq n test =
  let rec go k = function C.O -> true | C.S more -> test k && go (C.S k) more in
  go C.O n

let reason = function
  | Design f -> reason_of_design f
  | Refutation _ -> "it is not proved that nothing keeps the promises"
  | Everywhere (f, _) ->
      if not (C.is_mechanism f.C.control_count f.C.design.C.observables f.C.control_bits
                f.C.control_rows) then "a row of the mesh is no distribution"
      else if not (C.mesh_fits f.C.degree f.C.control_count f.C.triangles) then
        "the triangles do not tile a convex region"
      else if not (C.ratios_follow f) then
        "the first promise is not what privacy at every point says of the places"
      else if not (C.check f.C.design) then reason_of_design f.C.design
      else if not (seq f.C.design.C.secrets (C.place_fits f)) then
        "a place is outside of the mesh, or its row is not that of the mesh"
      else "a gradient is too large"

(* The character of UTF-8 at a place, and its length; -1 where there is none, of one byte. *)
let character text k =
  let byte j = if k + j < String.length text then Char.code text.[k + j] else 0 in
  let first = byte 0 in
  let size = if first < 0x80 then 1 else if first < 0xe0 then 2 else if first < 0xf0 then 3 else 4 in
  let rec code j so_far =
    if j = size then so_far
    else if byte j land 0xc0 <> 0x80 then -1
    else code (j + 1) (so_far * 64 + byte j land 0x3f)
  in
  let found = code 1 (if size = 1 then first else first land (0x7f lsr size)) in
  let least = [| 0; 0; 0x80; 0x800; 0x10000 |].(size) in
  if found < least || (first >= 0x80 && first < 0xc2) || first > 0xf4 then (-1, 1) else (found, size)

(* What a terminal obeys or does not show: controls, marks that turn or hide what stands beside
   them, blanks that are none, surrogates, what is for private use or for nothing. *)
let hidden =
  [ (-1, 0x1f); (0x7f, 0x9f); (0xad, 0xad); (0x34f, 0x34f); (0x600, 0x605); (0x61c, 0x61c);
    (0x6dd, 0x6dd); (0x70f, 0x70f); (0x890, 0x891); (0x8e2, 0x8e2); (0x115f, 0x1160); (0x17b4, 0x17b5); (0x180b, 0x180f); (0x200b, 0x200f); (0x2028, 0x202e); (0x2060, 0x206f);
    (0x3164, 0x3164); (0xd800, 0xf8ff); (0xfe00, 0xfe0f); (0xfeff, 0xfeff); (0xffa0, 0xffa0);
    (0xfff0, 0xfffb); (0x110bd, 0x110bd); (0x110cd, 0x110cd); (0x13430, 0x1343f);
    (0x1bca0, 0x1bca3); (0x1d173, 0x1d17a); (0xe0000, 0x1fffff) ]

let printable text =
  let out = Buffer.create (String.length text) in
  let rec from k =
    if k < String.length text then begin
      let code, size = character text k in
      if List.exists (fun (low, high) -> low <= code && code <= high) hidden then
        Buffer.add_char out '?'
      else Buffer.add_string out (String.sub text k size);
      from (k + size)
    end
  in
  from 0;
  Buffer.contents out

let judge path text =
  let d = read text in
  let accepted =
    match d.body with
    | Design f -> C.check f
    | Everywhere (f, _) -> C.check_everywhere f
    | Refutation f -> C.refute f
  in
  Printf.printf "%s\ndesign %s\n" (printable path) (printable d.digest);
  List.iter (fun line -> Printf.printf "  it says of itself: %s\n" (printable line)) d.said;
  if accepted then begin
    let (a, b), (c, e) = d.claims in
    let size x = let rec go k = function C.O -> k | C.S y -> go (k + 1) y in go 0 x in
    let show p = Printf.printf "  %s\n" p.words in
    let costs whose =
      Printf.printf "  %s: at most %s\n" d.goal (fraction a b);
      Printf.printf "  of %s keeps all this: at least %s\n" whose (fraction c e)
    in
    let sizes f =
      Printf.printf "  a mechanism of %d secrets and %d observables: every row is a distribution\n"
        (size f.C.secrets) (size f.C.observables)
    in
    Printf.printf "proved of its numbers:\n";
    (match d.body with
     | Design f -> sizes f; List.iter show d.promised; costs "every mechanism that"
     | Everywhere (f, words) ->
         Printf.printf "  %s\n" words;
         sizes f.C.design;
         List.iter show (List.tl d.promised);
         costs "everything that is private at all these points and"
     | Refutation f ->
         Printf.printf "  no mechanism of %d secrets and %d observables keeps all of these:\n"
           (size f.C.among) (size f.C.reported);
         List.iter show d.promised);
    Printf.printf "accepted\n";
    0
  end
  else begin
    Printf.printf "refused: %s\n" (reason d.body);
    1
  end

let content path =
  if Sys.file_exists path && Sys.is_directory path then raise (Sys_error "is a folder");
  let stream = open_in_bin path in
  let size = in_channel_length stream in
  let text = really_input_string stream size in
  close_in stream;
  text

let () =
  let paths = List.tl (Array.to_list Sys.argv) in
  if paths = [] then (prerr_endline "usage: checker FILE..."; exit 2);
  let one path =
    try judge path (content path) with
    | Unread message -> Printf.printf "%s\nnot read: %s\n" (printable path) (printable message); 2
    | Sys_error message -> Printf.printf "%s\nnot read: %s\n" (printable path) (printable message); 2
    | Stack_overflow | Out_of_memory -> Printf.printf "%s\nnot read: too large\n" (printable path); 2
    | Failure message | Invalid_argument message ->
        Printf.printf "%s\nnot read: %s\n" (printable path) (printable message); 2
  in
  exit (List.fold_left (fun worst path -> let own = one path in flush stdout; max worst own) 0 paths)
