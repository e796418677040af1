(** The theorem: what the checker accepts holds. *)

From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Optmech Require Import Definitions File Exponential Rates Checker Sums Keeps.
Import ListNotations.
Open Scope R_scope.

Lemma factor_bits_ok : (0 <= factor_bits)%Z.
Proof. unfold factor_bits. lia. Qed.
Opaque factor_bits.

Section Bound.
  Variables (n m : nat) (Q : nat -> nat -> R).
  Hypothesis HQ : mechanism n m Q.

  Lemma Q_nonneg s o : (s < n)%nat -> (o < m)%nat -> 0 <= Q s o.
  Proof. intros Hs Ho. exact (proj1 (HQ s Hs) o Ho). Qed.

  (** *** Inequalities of promises *)

  Definition valid (q : inequality) : Prop := value_of_terms Q (fst q) + IZR (snd q) <= 0.

  Lemma inside_ok s o v rest : forallb (inside n m) ((s, o, v) :: rest) = true ->
    (s < n)%nat /\ (o < m)%nat /\ forallb (inside n m) rest = true.
  Proof.
    cbn [forallb inside]. intros H. apply andb_prop in H. destruct H as [H1 Hpow].
    apply andb_prop in H1. destruct H1 as [Hs Ho].
    apply Nat.ltb_lt in Hs. apply Nat.ltb_lt in Ho. auto.
  Qed.

  Lemma scaled_up x y e w F : x <= e * y -> e * w <= F -> 0 <= y -> 0 < w -> x * w <= F * y.
  Proof.
    intros Hx HF Hy Hw. apply Rle_trans with (e * y * w); [now apply Rmult_le_compat_r; [lra|]|].
    replace (e * y * w) with (e * w * y) by ring. now apply Rmult_le_compat_r.
  Qed.

  Lemma factor_positive : 0 < IZR (2 ^ factor_bits).
  Proof. apply IZR_lt, pow2_pos, factor_bits_ok. Qed.

  Lemma ratio_valid r bits d window it q : rates_ok (FRatios r bits d window) = true ->
    of_ratio r bits d window it = Some q -> forallb (inside n m) (fst q) = true ->
    kept n m Q (meant (FRatios r bits d window)) -> valid q.
  Proof.
    cbn [rates_ok meant kept]. intros Hr Hq Hin HK. split_ands.
    destruct it as [[[i j] o] values]. unfold of_ratio in Hq.
    destruct (nth j (nth i d []) None) as [z|] eqn:Hz; [|discriminate].
    destruct values as [|[|v [|]] [|]]; try discriminate.
    destruct (_ && _) eqn:Hw; [|discriminate].
    destruct (high _ _) as [F|] eqn:HF; [|discriminate]. injection Hq as <-.
    split_ands. cbn [fst] in Hin.
    destruct (inside_ok _ _ _ _ Hin) as (Hi & Ho & Hin').
    destruct (inside_ok _ _ _ _ Hin') as (Hj & _ & _).
    destruct (exponent_of_ok r bits z) as [He Hv]; trivial.
    apply high_ok in HF; [|exact factor_bits_ok|exact He]. rewrite Hv in HF.
    assert (Hk : Q i o <= exp (value r * over bits z) * Q j o).
    { apply (HK i j o); trivial. now rewrite Hz. }
    unfold valid. cbn [fst snd value_of_terms fold_right].
    rewrite opp_IZR, !mult_IZR. pose proof factor_positive as Hpow.
    set (w := IZR (2 ^ factor_bits)) in *. set (E := exp _) in *.
    match goal with H : (0 <= v)%Z |- _ => apply IZR_le in H; rename H into Hv0 end.
    pose proof (Q_nonneg j o Hj Ho) as Hq.
    pose proof (scaled_up _ _ _ _ _ Hk HF Hq Hpow) as Hle.
    apply (Rmult_le_compat_l _ _ _ Hv0) in Hle. lra.
  Qed.

  Lemma pushed_terms a o : (0 < total a)%Z ->
    sum n (fun s => IZR (nth s a 0%Z) * Q s o) = IZR (total a) * pushed n (share a) Q o.
  Proof.
    intros Ht. apply IZR_lt in Ht. unfold pushed. rewrite <- sum_scale.
    apply sum_ext. intros s _. unfold share. fold (total a). field. lra.
  Qed.

  Lemma pushed_nonneg a o : nonnegative a = true -> (0 < total a)%Z -> (o < m)%nat ->
    0 <= pushed n (share a) Q o.
  Proof.
    intros Hn Ht Ho. apply IZR_lt in Ht. apply sum_nonneg. intros s Hs.
    apply Rmult_le_pos; [|now apply Q_nonneg].
    unfold share, Rdiv. fold (total a). apply Rmult_le_pos; [apply IZR_le; now apply nonnegative_ok|].
    left. now apply Rinv_0_lt_compat.
  Qed.

  (** A column of the terms, which is inside: then so is every term that is not 0. *)
  Lemma in_column (o : nat) : (o < m)%nat \/ (m <= o)%nat.
  Proof. lia. Qed.

  Lemma in_meant r bits pairs q a b d : nth_error pairs q = Some (a, b, d) ->
    In (share a, share b, value r * over bits d) (map (pair_meant r bits) pairs).
  Proof.
    intros H. apply nth_error_In in H. apply in_map_iff. exists (a, b, d). now split.
  Qed.

  Lemma spread_first o v weights from rest :
    (exists w, In w weights /\ w <> 0%Z) ->
    forallb (inside n m) (spread from o v weights rest) = true -> (o < m)%nat.
  Proof.
    revert from. induction weights as [|w weights IH]; intros from (x & Hin & Hx) H; [easy|].
    cbn [spread] in H. destruct (Z.eqb_spec w 0) as [->|Hw].
    - apply (IH (S from)); trivial. exists x. split; trivial.
      destruct Hin as [Hin|Hin]; trivial. congruence.
    - now destruct (inside_ok _ _ _ _ H) as (_ & Ho & _).
  Qed.

  Lemma total_positive a : (0 < total a)%Z -> exists w, In w a /\ w <> 0%Z.
  Proof.
    induction a as [|w a IH]; simpl; intros H; [lia|].
    destruct (Z.eq_dec w 0) as [->|Hw]; [|exists w; auto].
    destruct IH as (x & Hx & Hne); [exact H|]. exists x. auto.
  Qed.

  Lemma lifted_valid r bits pairs it q : rates_ok (FLifted r bits pairs) = true ->
    of_lifted n r bits pairs it = Some q -> forallb (inside n m) (fst q) = true ->
    kept n m Q (meant (FLifted r bits pairs)) -> valid q.
  Proof.
    cbn [rates_ok meant kept]. intros Hr Hq Hin HK. split_ands.
    destruct it as [[[p j] o] values]. unfold of_lifted in Hq.
    destruct (nth_error pairs p) as [[[a b] d]|] eqn:Hp; [|discriminate].
    destruct values as [|[|v [|]] [|]]; try discriminate.
    destruct (_ && _) eqn:Hw; [|discriminate].
    destruct (high _ _) as [F|] eqn:HF; [|discriminate]. injection Hq as <-.
    apply andb_prop in Hw. destruct Hw as [Hv0 Hfit]. apply Z.leb_le in Hv0.
    destruct (pair_fits_ok n _ _ _ Hfit) as (Ha & Hb & Hna & Hnb & Ht & Heq & Hd).
    destruct (exponent_of_ok r bits d) as [He Hv]; trivial.
    apply high_ok in HF; [|exact factor_bits_ok|exact He]. rewrite Hv in HF.
    assert (Ho : (o < m)%nat) by (eapply spread_first; [apply (total_positive a Ht)|exact Hin]).
    specialize (HK _ _ _ (in_meant r bits pairs p a b d Hp) o Ho).
    unfold valid. cbn [fst snd].
    rewrite (spread_value Q _ o a 0 _ n), (spread_value Q _ o b 0 _ n) by lia.
    change (fun s => IZR (nth s a 0%Z) * Q (0 + s)%nat o) with (fun s => IZR (nth s a 0%Z) * Q s o).
    change (fun s => IZR (nth s b 0%Z) * Q (0 + s)%nat o) with (fun s => IZR (nth s b 0%Z) * Q s o).
    rewrite !pushed_terms by lia. rewrite Heq.
    pose proof (pushed_nonneg b o Hnb ltac:(lia) Ho) as Hy.
    set (x := pushed n (share a) Q o) in *. set (y := pushed n (share b) Q o) in *.
    rewrite opp_IZR, !mult_IZR. pose proof factor_positive as Hpow.
    set (w := IZR (2 ^ factor_bits)) in *. set (E := exp _) in *.
    apply IZR_lt in Ht. apply IZR_le in Hv0. cbn [value_of_terms fold_right].
    pose proof (scaled_up _ _ _ _ _ HK HF Hy Hpow) as Hle.
    assert (Hc : 0 <= IZR v * IZR (total a)) by (apply Rmult_le_pos; lra).
    apply (Rmult_le_compat_l _ _ _ Hc) in Hle. lra.
  Qed.

  (** *** Approximate promises *)

  Lemma of_tests_value one F a b : length a = n -> length b = n ->
    forall tests from, value_of_terms Q (of_tests from one F a b tests) =
    sum (length tests) (fun i => IZR (nth i tests 0%Z) *
      (IZR one * sum n (fun s => IZR (nth s a 0%Z) * Q s (from + i)%nat) -
       IZR F * sum n (fun s => IZR (nth s b 0%Z) * Q s (from + i)%nat))).
  Proof.
    intros Ha Hb. induction tests as [|t tests IH]; intros from; [reflexivity|].
    cbn [of_tests length]. rewrite sum_first. cbn [nth]. rewrite Nat.add_0_r.
    assert (IH' := IH (S from)).
    rewrite (sum_ext (length tests)
      (fun i => IZR (nth i tests 0%Z) *
        (IZR one * sum n (fun s => IZR (nth s a 0%Z) * Q s (from + S i)%nat) -
         IZR F * sum n (fun s => IZR (nth s b 0%Z) * Q s (from + S i)%nat)))
      (fun i => IZR (nth i tests 0%Z) *
        (IZR one * sum n (fun s => IZR (nth s a 0%Z) * Q s (S from + i)%nat) -
         IZR F * sum n (fun s => IZR (nth s b 0%Z) * Q s (S from + i)%nat)))).
    2: { intros i _. now rewrite Nat.add_succ_r. }
    destruct (Z.eqb_spec t 0) as [->|Ht]; [rewrite IH'; lra|].
    rewrite (spread_value Q _ from a 0 _ n), (spread_value Q _ from b 0 _ n) by lia.
    change (fun s => IZR (nth s a 0%Z) * Q (0 + s)%nat from) with
      (fun s => IZR (nth s a 0%Z) * Q s from).
    change (fun s => IZR (nth s b 0%Z) * Q (0 + s)%nat from) with
      (fun s => IZR (nth s b 0%Z) * Q s from).
    rewrite IH', opp_IZR, !mult_IZR. lra.
  Qed.

  Lemma approximate_valid r bits pairs dn dd it q :
    rates_ok (FApproximate r bits pairs dn dd) = true ->
    of_approximate n m r bits pairs dn dd it = Some q ->
    kept n m Q (meant (FApproximate r bits pairs dn dd)) -> valid q.
  Proof.
    cbn [rates_ok meant kept]. intros Hr Hq HK. split_ands.
    destruct it as [[[p j] o] values]. unfold of_approximate in Hq.
    destruct (nth_error pairs p) as [[[a b] d]|] eqn:Hp; [|discriminate].
    destruct values as [|[|y [|]] [|tests [|]]]; try discriminate.
    destruct (_ && _) eqn:Hw; [|discriminate].
    destruct (high _ _) as [F|] eqn:HF; [|discriminate]. injection Hq as <-.
    apply andb_prop in Hw. destruct Hw as [Hw Hy0]. apply Z.leb_le in Hy0.
    apply andb_prop in Hw. destruct Hw as [Hw Htests].
    apply andb_prop in Hw. destruct Hw as [Hw Hlen]. apply Nat.eqb_eq in Hlen.
    apply andb_prop in Hw. destruct Hw as [Hfit Hdd]. apply Z.ltb_lt in Hdd.
    destruct (pair_fits_ok n _ _ _ Hfit) as (Ha & Hb & Hna & Hnb & Ht & Heq & Hd).
    destruct (exponent_of_ok r bits d) as [He Hv]; trivial.
    apply high_ok in HF; [|exact factor_bits_ok|exact He]. rewrite Hv in HF.
    specialize (HK _ _ _ (in_meant r bits pairs p a b d Hp)).
    unfold valid. cbn [fst snd]. rewrite (of_tests_value _ _ a b Ha Hb), Hlen.
    rewrite opp_IZR, !mult_IZR. pose proof factor_positive as Hpow.
    set (w := IZR (2 ^ factor_bits)) in *. set (E := exp _) in *.
    apply IZR_lt in Hdd. assert (HT := IZR_lt _ _ Ht). apply IZR_le in Hy0.
    set (T := IZR (total a)) in *. set (Y := IZR y) in *.
    apply Rle_trans with (Y * (w * IZR dd * T) *
      sum m (fun o => Rmax 0 (pushed n (share a) Q o - E * pushed n (share b) Q o)) +
      - (Y * IZR dn * w * T)).
    - apply Rplus_le_compat_r. rewrite <- sum_scale. apply sum_le. intros i Hi.
      change (fun s => IZR (nth s a 0%Z) * Q s (0 + i)%nat) with
        (fun s => IZR (nth s a 0%Z) * Q s i).
      change (fun s => IZR (nth s b 0%Z) * Q s (0 + i)%nat) with
        (fun s => IZR (nth s b 0%Z) * Q s i).
      rewrite !pushed_terms by lia. rewrite Heq. fold T.
      pose proof (pushed_nonneg b i Hnb ltac:(lia) Hi) as Hpb.
      set (x := pushed n (share a) Q i) in *. set (z := pushed n (share b) Q i) in *.
      assert (Hti : 0 <= IZR (nth i tests 0%Z) <= Y).
      { rewrite forallb_forall in Htests.
        specialize (Htests (nth i tests 0%Z) ltac:(apply nth_In; lia)).
        split_ands. split; now apply IZR_le. }
      set (t := IZR (nth i tests 0%Z)) in *.
      assert (Hc : 0 < w * IZR dd * T) by (apply Rmult_lt_0_compat; trivial; nra).
      apply Rle_trans with (t * (w * IZR dd * T * (x - E * z))).
      + apply Rmult_le_compat_l; [lra|].
        assert (w * E * z <= IZR F * z) by nra.
        assert (0 <= IZR dd * T) by nra. nra.
      + rewrite (Rmult_assoc Y), <- (Rmult_assoc t).
        pose proof (Rmax_l 0 (x - E * z)). pose proof (Rmax_r 0 (x - E * z)).
        set (M := Rmax _ _) in *.
        apply Rle_trans with (t * (w * IZR dd * T) * M).
        * apply Rmult_le_compat_l; trivial. apply Rmult_le_pos; lra.
        * rewrite Rmult_assoc. apply Rmult_le_compat_r; [|lra]. apply Rmult_le_pos; lra.
    - assert (Hc : 0 <= Y * (w * IZR dd * T)).
      { apply Rmult_le_pos; trivial. apply Rmult_le_pos; [|lra]. nra. }
      apply (Rmult_le_compat_l _ _ _ Hc) in HK.
      replace (Y * (w * IZR dd * T) * (IZR dn / IZR dd)) with (Y * IZR dn * w * T) in HK
        by (field; lra). lra.
  Qed.

  (** *** The best guesses *)

  Lemma best_of_strategy w G g bits k : k = length w -> (0 <= bits)%Z ->
    shaped (length w) n w = true -> strategy_fits m w G g = true ->
    IZR G * sum m (fun o => least k (fun t => sum n (fun s => over bits (entry w t s) * Q s o))) *
      IZR (2 ^ bits) <=
    sum m (fun o => sum k (fun t => IZR (entry g o t) *
      sum n (fun s => IZR (entry w t s) * Q s o))).
  Proof.
    intros -> Hb Hw Hg. unfold strategy_fits in Hg. split_ands.
    match goal with H : shaped m _ g = true |- _ => rename H into Hshape end.
    match goal with H : forallb _ g = true |- _ => rename H into Hall end.
    assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    rewrite (Rmult_comm _ (IZR (2 ^ bits))), <- Rmult_assoc, <- sum_scale.
    apply sum_le. intros o Ho.
    destruct (shaped_ok _ _ _ Hshape) as [Hlen Hrow].
    rewrite forallb_forall in Hall.
    specialize (Hall (nth o g []) ltac:(apply nth_In; lia)). split_ands.
    match goal with H : total _ = G |- _ => rename H into Htot end.
    assert (HG : IZR G = sum (length w) (fun t => IZR (entry g o t))).
    { rewrite <- Htot. apply total_sum. rewrite Hrow by trivial. lia. }
    set (L := least _ _).
    rewrite HG, (Rmult_comm (IZR (2 ^ bits))), Rmult_assoc, Rmult_comm, <- sum_scale.
    apply sum_le. intros t Ht.
    assert (Hgt : 0 <= IZR (entry g o t)) by (apply IZR_le; now apply nonnegative_ok).
    rewrite Rmult_comm. apply Rmult_le_compat_l; trivial.
    assert (HL : L <= sum n (fun s => over bits (entry w t s) * Q s o)).
    { unfold L. exact (least_le (length w)
        (fun t => sum n (fun s => over bits (entry w t s) * Q s o)) t Ht). }
    apply Rle_trans with (IZR (2 ^ bits) * sum n (fun s => over bits (entry w t s) * Q s o)).
    - apply Rmult_le_compat_l; lra.
    - right. rewrite <- sum_scale. apply sum_ext. intros s _. unfold over. field. lra.
  Qed.

  Lemma strategy_terms scale w G g : shaped (length w) n w = true ->
    strategy_fits m w G g = true ->
    value_of_terms Q (of_strategy 0 scale w g) =
    - IZR scale * sum m (fun o => sum (length w) (fun t => IZR (entry g o t) *
      sum n (fun s => IZR (entry w t s) * Q s o))).
  Proof.
    intros Hw Hg. unfold strategy_fits in Hg. split_ands.
    match goal with H : shaped m _ g = true |- _ => destruct (shaped_ok _ _ _ H) as [Hlen Hrow] end.
    rewrite (strategy_value Q scale n w (length w) eq_refl (shaped_most _ _ _ Hw) g 0 m Hlen Hrow).
    reflexivity.
  Qed.

  Lemma adversary_valid bits w a b it q :
    of_adversary n m bits w a b it = Some q ->
    kept n m Q (meant (FAdversary bits w a b)) -> valid q.
  Proof.
    cbn [meant kept]. intros Hq HK.
    destruct it as [[[i j] o] values]. unfold of_adversary in Hq.
    destruct values as [|[|G [|]] g]; try discriminate.
    destruct (_ && _) eqn:Hw; [|discriminate]. injection Hq as <-. 
    apply andb_prop in Hw. destruct Hw as [Hw Hg].
    apply andb_prop in Hw. destruct Hw as [Hw Hshape].
    apply andb_prop in Hw. destruct Hw as [Hb Hd].
    apply Z.leb_le in Hb. apply Z.ltb_lt in Hd.
    pose proof (best_of_strategy w G g bits _ eq_refl Hb Hshape Hg) as Hbest.
    unfold valid. cbn [fst snd]. rewrite (strategy_terms b w G g Hshape Hg).
    rewrite !mult_IZR. apply IZR_lt in Hd.
    assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    unfold strategy_fits in Hg. split_ands.
    match goal with H : (0 <= G)%Z |- _ => apply IZR_le in H; rename H into HG end.
    set (X := sum m _) in Hbest. fold X in HK. clearbody X. match type of Hbest with _ <= ?t => set (Y := t) in * end.
    assert (HX : IZR a <= IZR b * X).
    { apply (Rmult_le_compat_l (IZR b)) in HK; [|lra].
      replace (IZR b * (IZR a / IZR b)) with (IZR a) in HK by (field; lra). exact HK. }
    assert (IZR b * (IZR G * X * IZR (2 ^ bits)) <= IZR b * Y) by (apply Rmult_le_compat_l; lra).
    assert (0 <= IZR G * IZR (2 ^ bits)) by nra.
    assert (IZR G * IZR (2 ^ bits) * IZR a <= IZR G * IZR (2 ^ bits) * (IZR b * X))
      by (apply Rmult_le_compat_l; lra).
    lra.
  Qed.

  (** *** Means *)

  Lemma row_terms u s bits : (0 <= bits)%Z ->
    sum m (fun o => IZR (entry u s o) * Q s o) =
    IZR (2 ^ bits) * sum m (fun o => over bits (entry u s o) * Q s o).
  Proof.
    intros Hb. assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    rewrite <- sum_scale. apply sum_ext. intros o _. unfold over. field. lra.
  Qed.

  Lemma mean_valid bits u a b it q :
    of_mean n m bits u a b it = Some q ->
    kept n m Q (meant (FMean bits u a b)) -> valid q.
  Proof.
    cbn [meant kept]. intros Hq HK.
    destruct it as [[[i j] o] values]. unfold of_mean in Hq.
    destruct values as [|[|v [|]] [|]]; try discriminate.
    destruct (_ && _) eqn:Hw; [|discriminate]. injection Hq as <-. split_ands.
    match goal with H : shaped n m u = true |- _ => rename H into Hu end.
    unfold valid. cbn [fst snd].
    rewrite (along_rows_value Q _ u 0 n m (repeat_length _ _) (proj1 (shaped_ok _ _ _ Hu))
      (shaped_most _ _ _ Hu)).
    assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    rewrite (sum_ext n _ (fun s => (IZR v * IZR b * IZR (2 ^ bits)) *
      sum m (fun o => over bits (entry u s o) * Q s o))).
    2: { intros s Hs. change (0 + s)%nat with s. rewrite (row_terms u s bits) by trivial.
         rewrite (nth_indep _ 0%Z (v * b)%Z) by now rewrite repeat_length.
         rewrite nth_repeat, mult_IZR. ring. }
    rewrite sum_scale, opp_IZR, !mult_IZR. set (X := sum n _) in *.
    match goal with H : (0 < b)%Z |- _ => apply IZR_lt in H end.
    match goal with H : (0 <= v)%Z |- _ => apply IZR_le in H end.
    assert (HX : IZR b * X <= IZR a).
    { apply (Rmult_le_compat_l (IZR b)) in HK; [|lra].
      replace (IZR b * (IZR a / IZR b)) with (IZR a) in HK by (field; lra). exact HK. }
    assert (0 <= IZR v * IZR (2 ^ bits)) by nra. nra.
  Qed.

  Lemma means_valid bits u a b it q :
    of_means n m bits u a b it = Some q ->
    kept n m Q (meant (FMeans bits u a b)) -> valid q.
  Proof.
    cbn [meant kept]. intros Hq HK.
    destruct it as [[[s j] o] values]. unfold of_means in Hq.
    destruct values as [|[|v [|]] [|]]; try discriminate.
    destruct (_ && _) eqn:Hw; [|discriminate]. injection Hq as <-. split_ands.
    match goal with H : shaped n m u = true |- _ => rename H into Hu end.
    match goal with H : Nat.ltb s n = true |- _ => apply Nat.ltb_lt in H; rename H into Hs end.
    specialize (HK s Hs).
    unfold valid. cbn [fst snd].
    rewrite (along_value Q s _ _ 0 [] m) by apply (shaped_most _ _ _ Hu).
    change (fun o => IZR (nth o (nth s u []) 0%Z) * Q s (0 + o)%nat) with
      (fun o => IZR (entry u s o) * Q s o).
    assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    rewrite (row_terms u s bits) by trivial. cbn [value_of_terms fold_right].
    rewrite opp_IZR, !mult_IZR. set (X := sum m _) in *.
    match goal with H : (0 < b)%Z |- _ => apply IZR_lt in H end.
    match goal with H : (0 <= v)%Z |- _ => apply IZR_le in H end.
    set (A := IZR (nth s a 0%Z)) in *.
    assert (HX : IZR b * X <= A).
    { apply (Rmult_le_compat_l (IZR b)) in HK; [|lra].
      replace (IZR b * (A / IZR b)) with A in HK by (field; lra). exact HK. }
    assert (0 <= IZR v * IZR (2 ^ bits)) by nra. nra.
  Qed.

  (** *** Zeros *)

  Lemma support_valid ok it q :
    of_support ok it = Some q -> forallb (inside n m) (fst q) = true ->
    kept n m Q (meant (FSupport ok)) -> valid q.
  Proof.
    cbn [meant kept]. intros Hq Hin HK.
    destruct it as [[[s j] o] values]. unfold of_support in Hq.
    destruct values as [|[|v [|]] [|]]; try discriminate.
    destruct (nth o (nth s ok []) true) eqn:Hok; [discriminate|]. injection Hq as <-.
    destruct (inside_ok _ _ _ _ Hin) as (Hs & Ho & _).
    unfold valid. cbn [fst snd value_of_terms fold_right]. rewrite (HK s o Hs Ho Hok). lra.
  Qed.

  Lemma fixed_valid bits rows it q : rates_ok (FFixed bits rows) = true ->
    of_fixed bits rows it = Some q -> forallb (inside n m) (fst q) = true ->
    kept n m Q (meant (FFixed bits rows)) -> valid q.
  Proof.
    cbn [rates_ok meant kept]. intros Hb Hq Hin HK. apply Z.leb_le in Hb.
    destruct it as [[[s j] o] values]. unfold of_fixed in Hq.
    destruct values as [|[|v [|]] [|]]; try discriminate.
    destruct (nth s rows None) as [row|] eqn:Hrow; [|discriminate]. injection Hq as <-.
    destruct (inside_ok _ _ _ _ Hin) as (Hs & Ho & _).
    assert (HR : Q s o = over bits (nth o row 0%Z)).
    { apply (HK s o (fun o => over bits (nth o row 0%Z)) Hs Ho). now rewrite Hrow. }
    unfold valid. cbn [fst snd value_of_terms fold_right].
    rewrite HR, opp_IZR, !mult_IZR. unfold over.
    assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
    right. field. lra.
  Qed.

  Lemma inequality_valid p it q : rates_ok p = true -> inequality_of n m p it = Some q ->
    forallb (inside n m) (fst q) = true -> kept n m Q (meant p) -> valid q.
  Proof.
    destruct p; cbn [inequality_of]; intros.
    - eapply ratio_valid; eauto.
    - eapply lifted_valid; eauto.
    - eapply approximate_valid; eauto.
    - eapply adversary_valid; eauto.
    - eapply mean_valid; eauto.
    - eapply means_valid; eauto.
    - eapply support_valid; eauto.
    - eapply fixed_valid; eauto.
  Qed.

  (** *** The table *)

  Definition table_value (t : list (list Z)) : R :=
    sum n (fun s => sum m (fun o => IZR (entry t s o) * Q s o)).

  Definition table_fits (t : list (list Z)) : Prop :=
    length t = n /\ forall s, (s < n)%nat -> length (nth s t []) = m.

  Lemma add_at_length row : forall o v, length (add_at row o v) = length row.
  Proof. induction row as [|x row IH]; intros [|o] v; simpl; trivial. now rewrite IH. Qed.

  Lemma add_at_nth row : forall o v i, (o < length row)%nat ->
    nth i (add_at row o v) 0%Z = (nth i row 0 + if Nat.eqb i o then v else 0)%Z.
  Proof.
    induction row as [|x row IH]; intros o v i Ho; simpl in Ho; [lia|].
    destruct o as [|o], i as [|i]; simpl; try lia. apply IH. lia.
  Qed.

  Lemma add_to_length t : forall s o v, length (add_to t s o v) = length t.
  Proof. induction t as [|row t IH]; intros [|s] o v; simpl; trivial. now rewrite IH. Qed.

  Lemma add_to_nth t : forall s o v i, (s < length t)%nat ->
    nth i (add_to t s o v) [] = if Nat.eqb i s then add_at (nth i t []) o v else nth i t [].
  Proof.
    induction t as [|row t IH]; intros s o v i Hs; simpl in Hs; [lia|].
    destruct s as [|s], i as [|i]; simpl; trivial. apply IH. lia.
  Qed.

  Lemma add_term_ok t u : table_fits t -> inside n m u = true ->
    table_fits (add_term t u) /\
    table_value (add_term t u) = table_value t + value_of_terms Q [u].
  Proof.
    intros [Hn Hm] Hin. destruct u as [[s o] v]. cbn [inside] in Hin.
    apply andb_prop in Hin. destruct Hin as [Hs Ho].
    apply Nat.ltb_lt in Hs. apply Nat.ltb_lt in Ho. cbn [add_term]. split.
    - split; [now rewrite add_to_length|]. intros i Hi.
      rewrite add_to_nth by lia. destruct (Nat.eqb i s); [rewrite add_at_length|]; auto.
    - cbn [value_of_terms fold_right]. unfold table_value.
      rewrite (sum_ext n _ (fun i => sum m (fun j => IZR (entry t i j) * Q i j) +
        (if Nat.eqb i s then IZR v * Q s o else 0))).
      + rewrite sum_plus. f_equal. rewrite Rplus_0_r. apply (sum_one n s); trivial.
        * intros i _ Hne. apply Nat.eqb_neq in Hne. now rewrite Hne.
        * now rewrite Nat.eqb_refl.
      + intros i Hi. unfold entry at 1. rewrite add_to_nth by lia.
        destruct (Nat.eqb_spec i s) as [->|Hne]; [|rewrite Rplus_0_r; reflexivity].
        rewrite (sum_ext m _ (fun j => IZR (entry t s j) * Q s j +
          (if Nat.eqb j o then IZR v * Q s o else 0))).
        * rewrite sum_plus. f_equal. apply (sum_one m o); trivial.
          -- intros j _ Hne. apply Nat.eqb_neq in Hne. now rewrite Hne.
          -- now rewrite Nat.eqb_refl.
        * intros j Hj. rewrite add_at_nth by (rewrite Hm; lia). fold (entry t s j).
          destruct (Nat.eqb_spec j o) as [->|Hne]; rewrite plus_IZR; lra.
  Qed.

  Lemma add_terms_ok terms : forall t, table_fits t -> forallb (inside n m) terms = true ->
    table_fits (fold_left add_term terms t) /\
    table_value (fold_left add_term terms t) = table_value t + value_of_terms Q terms.
  Proof.
    induction terms as [|u terms IH]; intros t Ht Hin; [simpl; split; [trivial|lra]|].
    cbn [forallb] in Hin. apply andb_prop in Hin. destruct Hin as [Hu Hin].
    destruct (add_term_ok t u Ht Hu) as [Ht' Hv].
    destruct (IH _ Ht' Hin) as [Hf Hw]. cbn [fold_left]. split; trivial.
    rewrite Hw, Hv. destruct u as [[s o] v].
    change (value_of_terms Q ((s, o, v) :: terms)) with (IZR v * Q s o + value_of_terms Q terms).
    change (value_of_terms Q [(s, o, v)]) with (IZR v * Q s o + 0). lra.
  Qed.

  (** What the sums are worth is at most [x]. *)
  Definition worth_at_most (x : R) (t : option sums) : Prop :=
    match t with
    | None => True
    | Some (table, c) => table_fits table /\ table_value table + IZR c <= x
    end.

  Lemma add_item_ok p it x t : rates_ok p = true -> kept n m Q (meant p) ->
    worth_at_most x t -> worth_at_most x (add_item n m p t it).
  Proof.
    intros Hr HK Ht. unfold add_item. destruct t as [[table c]|]; [|exact I].
    destruct (inequality_of n m p it) as [[terms d]|] eqn:Hq; [|exact I].
    destruct (forallb (inside n m) terms) eqn:Hin; [|exact I].
    pose proof (inequality_valid p it _ Hr Hq Hin HK) as Hv. unfold valid in Hv.
    cbn [fst snd] in Hv. destruct Ht as [Hf Hle].
    destruct (add_terms_ok terms table Hf Hin) as [Hf' Hw]. split; trivial.
    rewrite Hw, plus_IZR. lra.
  Qed.

  Lemma add_items_ok p own x : rates_ok p = true -> kept n m Q (meant p) -> forall t,
    worth_at_most x t -> worth_at_most x (fold_left (add_item n m p) own t).
  Proof.
    intros Hr HK. induction own as [|it own IH]; intros t Ht; trivial.
    cbn [fold_left]. now apply IH, add_item_ok.
  Qed.

  Lemma add_promises_ok x : forall ps own t,
    forallb rates_ok ps = true -> (forall p, In p ps -> kept n m Q (meant p)) ->
    worth_at_most x t -> worth_at_most x (add_promises n m ps own t).
  Proof.
    induction ps as [|p ps IH]; intros own t Hr HK Ht; trivial.
    cbn [forallb] in Hr. apply andb_prop in Hr. destruct Hr as [Hp Hps].
    destruct own as [|its own]; trivial. cbn [add_promises]. apply IH; trivial.
    - intros q Hq. apply HK. now right.
    - apply add_items_ok; trivial. apply HK. now left.
  Qed.

  (** *** Rows are distributions *)

  Lemma minima_ok t : table_fits t -> m <> O ->
    IZR (total (map least_of t)) <= table_value t.
  Proof.
    intros [Hn Hm] Hm0. rewrite (total_sum _ n) by (rewrite map_length; lia).
    apply sum_le. intros s Hs.
    rewrite (nth_indep _ 0%Z (least_of [])) by (rewrite map_length; lia).
    rewrite map_nth. destruct (HQ s Hs) as [Hpos Hone].
    replace (IZR (least_of (nth s t []))) with (IZR (least_of (nth s t [])) * sum m (Q s))
      by (rewrite Hone; lra).
    rewrite <- sum_scale. apply sum_le. intros o Ho.
    apply Rmult_le_compat_r; [now apply Hpos|]. apply IZR_le, least_of_le. rewrite Hm; lia.
  Qed.

  (** *** The objective *)

  Lemma objective_ok k g it terms scale y rows x z : is_mechanism n m k rows = true ->
    costs n m k rows g x z = true ->
    objective_of n m g it = Some (terms, scale) -> at_most n m (goal_meant g) Q y ->
    value_of_terms Q terms <= IZR scale * y.
  Proof.
    intros _ Hc Hobj Hy. destruct it as [[[i j] o] values]. unfold objective_of in Hobj.
    unfold costs in Hc. apply andb_prop in Hc. destruct Hc as [_ Hc].
    destruct g as [a prior b loss|b loss|bits w]; cbn [goal_meant at_most] in Hy.
    - destruct values as [|[|v [|]] [|]]; try discriminate.
      destruct (0 <? v)%Z eqn:Hv; [|discriminate]. injection Hobj as <- <-.
      split_ands. 
      match goal with H : shaped n m loss = true |- _ => rename H into Hloss end.
      match goal with H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H; rename H into Hp end.
      rewrite (along_rows_value Q _ loss 0 n m); [|now rewrite map_length|
        exact (proj1 (shaped_ok _ _ _ Hloss))|exact (shaped_most _ _ _ Hloss)].
      assert (Hpow : 0 < IZR (2 ^ b)) by (apply IZR_lt, pow2_pos; trivial).
      assert (Hpow1 : 0 < IZR (2 ^ a)) by (apply IZR_lt, pow2_pos; trivial).
      rewrite (sum_ext n _ (fun s => (IZR v * (IZR (2 ^ a) * IZR (2 ^ b))) *
        (over a (nth s prior 0%Z) * sum m (fun o => over b (entry loss s o) * Q s o)))).
      2: { intros s Hs. change (0 + s)%nat with s. rewrite (row_terms loss s b) by trivial.
           rewrite (nth_indep _ 0%Z (v * 0)%Z) by (rewrite map_length; lia).
           rewrite (map_nth (Z.mul v)), mult_IZR. unfold over at 2. set (X := sum m _).
           field. lra. }
      rewrite sum_scale, !mult_IZR.
      apply Rmult_le_compat_l; [|exact Hy].
      apply IZR_lt in Hv. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; lra.
    - destruct values as [|weights [|]]; try discriminate.
      destruct (nonnegative weights && _ && _) eqn:Hw; [|discriminate]. injection Hobj as <- <-. 
      split_ands.
      match goal with H : shaped n m loss = true |- _ => rename H into Hloss end.
      match goal with H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H; rename H into Hp end.
      rewrite (along_rows_value Q _ loss 0 n m); [|trivial|
        exact (proj1 (shaped_ok _ _ _ Hloss))|exact (shaped_most _ _ _ Hloss)].
      rewrite mult_IZR, (total_sum weights n) by lia.
      rewrite (Rmult_comm (sum _ _)), (Rmult_comm _ y), <- sum_scale, <- sum_scale.
      apply sum_le. intros s Hs. change (0 + s)%nat with s.
      rewrite (row_terms loss s b) by trivial.
      assert (Hpow : 0 < IZR (2 ^ b)) by (apply IZR_lt, pow2_pos; trivial).
      assert (Hn : 0 <= IZR (nth s weights 0%Z)) by (apply IZR_le; now apply nonnegative_ok).
      specialize (Hy s Hs). set (X := sum m _) in *. 
      assert (IZR (2 ^ b) * X <= IZR (2 ^ b) * y) by (apply Rmult_le_compat_l; lra). nra.
    - destruct values as [|[|G [|]] g]; try discriminate.
      destruct ((0 <? G)%Z && _) eqn:Hw; [|discriminate]. injection Hobj as <- <-.
      apply andb_prop in Hw. destruct Hw as [HG Hg]. split_ands.
      match goal with H : shaped _ n w = true |- _ => rename H into Hshape end.
      pose proof (best_of_strategy w G g bits _ eq_refl ltac:(trivial) Hshape Hg) as Hbest.
      rewrite (strategy_terms 1 w G g Hshape Hg), mult_IZR.
      set (X := sum m _) in Hbest. fold X in Hy. clearbody X. match type of Hbest with _ <= ?t => set (Y := t) in * end.
      assert (Hpow : 0 < IZR (2 ^ bits)) by (apply IZR_lt, pow2_pos; trivial).
      apply IZR_lt in HG. assert (0 < IZR G * IZR (2 ^ bits)) by nra. nra.
  Qed.
End Bound.

Lemma zeros_fit n m : table_fits n m (repeat (repeat 0%Z m) n).
Proof.
  split; [apply repeat_length|]. intros s Hs.
  rewrite (nth_indep _ [] (repeat 0%Z m)) by now rewrite repeat_length.
  now rewrite nth_repeat, repeat_length.
Qed.

Lemma zeros_value n m Q : table_value n m Q (repeat (repeat 0%Z m) n) = 0.
Proof.
  apply sum_zero. intros s Hs. apply sum_zero. intros o _. unfold entry.
  rewrite (nth_indep _ [] (repeat 0%Z m)) by now rewrite repeat_length.
  rewrite !nth_repeat. lra.
Qed.

Theorem bound_holds_ok f : let n := secrets f in let m := observables f in
  is_mechanism n m (matrix_bits f) (matrix f) = true ->
  costs n m (matrix_bits f) (matrix f) (objective f) (cost_num f) (cost_den f) = true ->
  bound_holds f = true ->
  lower_bound n m (goal_meant (objective f)) (map meant (promises f))
    (IZR (least_num f) / IZR (least_den f)).
Proof.
  intros n m Hmech Hcost H Q HQ HK y Hy. unfold bound_holds in H. cbv zeta in H.
  fold n m in H. apply andb_prop in H. destruct H as [H Hbound].
  destruct (objective_of n m (objective f) (goal_item f)) as [[terms scale]|] eqn:Hobj;
    [|discriminate].
  apply andb_prop in Hbound. destruct Hbound as [Hin Hbound].
  destruct (add_promises _ _ _ _ _) as [[table c]|] eqn:Hadd; [|discriminate].
  split_ands.
  match goal with H : negb _ = true |- _ => apply negb_true_iff, Nat.eqb_neq in H; rename H into Hm end.
  match goal with H : (_ * scale <= _)%Z |- _ => rename H into Hle end.
  assert (Hval : value_of_terms Q terms <= IZR scale * y) by (eapply objective_ok; eauto).
  destruct (add_terms_ok n m Q terms _ (zeros_fit n m) ltac:(trivial)) as [Hf Hv].
  rewrite zeros_value, Rplus_0_l in Hv.
  assert (Hworth : worth_at_most n m Q (value_of_terms Q terms)
    (add_promises n m (promises f) (items f)
      (Some (fold_left add_term terms (repeat (repeat 0%Z m) n), 0%Z)))).
  { apply add_promises_ok; trivial.
    - intros p Hp. apply HK. now apply in_map.
    - split; trivial. rewrite Hv. simpl. lra. }
  rewrite Hadd in Hworth. destruct Hworth as [Hfits Hsum].
  pose proof (minima_ok n m Q HQ table Hfits Hm) as Hmin.
  apply IZR_le in Hle. rewrite !mult_IZR, plus_IZR in Hle.
  repeat match goal with H : (0 < _)%Z |- _ => apply IZR_lt in H end.
  set (B := IZR (total (map least_of table)) + IZR c) in *.
  assert (HB : B <= IZR scale * y) by (unfold B; lra).
  apply Rmult_le_reg_r with (IZR (least_den f) * IZR scale); [nra|].
  replace (IZR (least_num f) / IZR (least_den f) * (IZR (least_den f) * IZR scale)) with
    (IZR (least_num f) * IZR scale) by (field; lra).
  apply Rle_trans with (B * IZR (least_den f)); [exact Hle|].
  replace (y * (IZR (least_den f) * IZR scale)) with (IZR scale * y * IZR (least_den f)) by ring.
  apply Rmult_le_compat_r; lra.
Qed.

Theorem proper_ok f : let n := secrets f in let m := observables f in
  costs n m (matrix_bits f) (matrix f) (objective f) (cost_num f) (cost_den f) = true ->
  proper f = true ->
  proper_goal n m (goal_meant (objective f)) (INR n / IZR (2 ^ 52)).
Proof.
  intros n m Hcost H. unfold proper in H. unfold costs in Hcost.
  apply andb_prop in Hcost. destruct Hcost as [_ Hcost].
  assert (Hlosses : forall b loss, (0 <= b)%Z -> forallb nonnegative loss = true ->
    forall s o, 0 <= over b (entry loss s o)).
  { intros b loss Hb Hall s o. unfold over, Rdiv. apply Rmult_le_pos.
    - apply IZR_le. unfold entry. destruct (Nat.lt_ge_cases s (length loss)) as [Hs|Hs].
      + rewrite forallb_forall in Hall. apply nonnegative_ok, Hall, nth_In. lia.
      + rewrite (nth_overflow loss) by lia. destruct o; simpl; lia.
    - left. apply Rinv_0_lt_compat, IZR_lt, pow2_pos. trivial. }
  destruct (objective f) as [a prior b loss|b loss|bits w]; cbn [goal_meant proper_goal];
    [| |exact I].
  - split_ands.
    match goal with H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H; rename H into Hp end.
    match goal with H : (Z.abs _ * _ <= _)%Z |- _ => rename H into Hsum end.
    assert (Ha : 0 < IZR (2 ^ a)) by (apply IZR_lt, pow2_pos; trivial).
    split; [|split].
    + intros s Hs. unfold over, Rdiv. apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat].
      apply IZR_le. now apply nonnegative_ok.
    + apply IZR_le in Hsum. rewrite !mult_IZR, abs_IZR, minus_IZR in Hsum.
      rewrite (total_sum prior n) in Hsum by (rewrite Hp; apply Nat.le_refl). fold n in Hsum.
      rewrite <- INR_IZR_INZ in Hsum.
      set (t := sum n (fun i => IZR (nth i prior 0%Z))) in *.
      assert (Ht : sum n (fun s => over a (nth s prior 0%Z)) = t / IZR (2 ^ a)).
      { unfold t, Rdiv. rewrite (Rmult_comm (sum _ _)), <- sum_scale. apply sum_ext.
        intros i _. unfold over, Rdiv. ring. }
      rewrite Ht. set (A := IZR (2 ^ a)) in *.
      replace (t / A - 1) with ((t - A) * / A) by (field; lra).
      rewrite Rabs_mult, (Rabs_pos_eq (/ A)) by (left; now apply Rinv_0_lt_compat).
      assert (H52 : 0 < IZR (2 ^ 52)) by (apply IZR_lt; reflexivity).
      set (B := IZR (2 ^ 52)) in *. clearbody B A t.
      apply Rmult_le_reg_r with (A * B); [nra|].
      replace (Rabs (t - A) * / A * (A * B)) with (Rabs (t - A) * B) by (field; lra).
      replace (INR n / B * (A * B)) with (INR n * A) by (field; lra). exact Hsum.
    + intros s o _ _. now apply Hlosses.
  - split_ands. intros s o _ _. now apply Hlosses.
Qed.

Theorem refuted : forall f, refute f = true -> holds_refutation f.
Proof.
  intros f H. unfold refute in H. cbv zeta in H.
  apply andb_prop in H. destruct H as [H Hsum].
  apply andb_prop in H. destruct H as [H Hr].
  apply andb_prop in H. destruct H as [Hn Hm]. apply Nat.ltb_lt in Hn, Hm.
  unfold holds_refutation. split; [exact Hn|]. split; [exact Hm|]. intros Q HQ HK.
  assert (Hworth : worth_at_most (among f) (reported f) Q 0
    (add_promises (among f) (reported f) (together f) (against f)
      (Some (repeat (repeat 0%Z (reported f)) (among f), 0%Z)))).
  { apply add_promises_ok; trivial.
    - intros p Hp. apply HK. now apply in_map.
    - split; [apply zeros_fit|]. rewrite zeros_value. simpl. lra. }
  destruct (add_promises _ _ _ _ _) as [[table c]|]; [|discriminate].
  destruct Hworth as [Hfits Hle]. apply Z.ltb_lt in Hsum. apply IZR_lt in Hsum.
  rewrite plus_IZR in Hsum.
  pose proof (minima_ok _ _ Q HQ table Hfits ltac:(lia)) as Hmin. lra.
Qed.

Theorem correct : forall f, check f = true -> holds f.
Proof.
  intros f H. unfold check in H.
  apply andb_prop in H. destruct H as [H Hsome]. apply Nat.ltb_lt in Hsome.
  apply andb_prop in H. destruct H as [H Hproper].
  apply andb_prop in H. destruct H as [H Hbound].
  apply andb_prop in H. destruct H as [H Hkeeps].
  apply andb_prop in H. destruct H as [Hmech Hcost].
  unfold holds, optimal. split; [exact Hsome|]. split; [split; [|split; [|split]]|].
  - exact (is_mechanism_ok _ _ _ _ Hmech).
  - intros p Hp. apply in_map_iff in Hp. destruct Hp as (q & <- & Hq).
    apply (keeps_ok _ _ _ _ Hmech). rewrite forallb_forall in Hkeeps. now apply Hkeeps.
  - now apply costs_ok.
  - now apply bound_holds_ok.
  - now apply proper_ok.
Qed.
