(** The walk along a segment through the triangles of a mesh. *)

From Coq Require Import Reals List Lia Lra Psatz.
From Optmech Require Import Definitions Bernstein Mesh.
Import ListNotations.
Open Scope R_scope.

Section Walk.
  Variables (d : nat) (eps : R) (mesh : list triangle) (P : nat -> nat -> R) (o : nat).
  Hypothesis Hd : (0 < d)%nat.
  Hypothesis Heps : 0 <= eps.
  Hypothesis Harea : forall t, In t mesh -> 0 < area t.
  Hypothesis Hparted : forall s t, In s mesh -> In t mesh -> s = t \/ parted s t \/ parted t s.
  (** Every edge is that of two triangles, or has the whole mesh on its left. *)
  Hypothesis Hedges : forall t e, In t mesh -> In e (edges t) ->
    (exists t' e', In t' mesh /\ In e' (edges t') /\ matched d e e') \/
    (forall t' v, In t' mesh -> In v (corners t') -> 0 <= left_of e v).
  Hypothesis HP : forall t i j k, In t mesh -> (i + j + k = d)%nat -> 0 <= P (row t i j k) o.
  Hypothesis Hgentle : forall t, In t mesh -> gentle d eps t (fun i j k => P (row t i j k) o).

  Notation val := (level d P o).

  Lemma grows t z w : In t mesh -> inside t z -> inside t w ->
    val t z <= exp (eps * apart z w) * val t w.
  Proof. intros Ht. apply growth_inside; auto. Qed.

  Section Segment.
    Variables x y : point.
    Hypothesis Hgeneral : forall t v, In t mesh -> In v (corners t) -> cross x y v <> 0.
    Variable last : triangle.
    Hypothesis Hlast : In last mesh.
    Hypothesis Hy : within last y.

    Definition at_ (t : R) : point :=
      (fst x + t * (fst y - fst x), snd x + t * (snd y - snd x)).
    Definition A (e : edge) (t : R) : R := left_of e (at_ t).

    Lemma A_mean e t s u : A e (t + (s - t) * u) = (1 - u) * A e t + u * A e s.
    Proof. unfold A, at_, left_of, cross. cbn [fst snd]. ring. Qed.

    Lemma at_1 : at_ 1 = y.
    Proof. unfold at_. destruct x, y. cbn [fst snd]. f_equal; ring. Qed.

    Lemma at_0 : at_ 0 = x.
    Proof. unfold at_. destruct x, y. cbn [fst snd]. f_equal; ring. Qed.

    Lemma on_line t : cross x y (at_ t) = 0.
    Proof. unfold cross, at_. cbn [fst snd]. ring. Qed.

    Lemma apart_at s t : s <= t -> apart (at_ s) (at_ t) = (t - s) * apart x y.
    Proof.
      intros H. assert (Hs := apart_square (at_ s) (at_ t)). assert (Hxy := apart_square x y).
      pose proof (apart_nonneg (at_ s) (at_ t)). pose proof (apart_nonneg x y).
      assert (E : apart (at_ s) (at_ t) ^ 2 = ((t - s) * apart x y) ^ 2).
      { rewrite Hs, Rpow_mult_distr, Hxy. unfold at_. cbn [fst snd]. ring. }
      assert (0 <= (t - s) * apart x y) by (apply Rmult_le_pos; lra).
      apply Rle_antisym; apply square_le; lra.
    Qed.

    Definition going (e : edge) (t : R) : Prop := 0 <= A e t /\ (0 < A e t \/ 0 < A e 1).

    Lemma share t s r : t < r < s -> exists u, 0 < u < 1 /\ r = t + (s - t) * u.
    Proof.
      intros H. exists ((r - t) / (s - t)). split; [|field; lra].
      assert (Hi : 0 < / (s - t)) by (apply Rinv_0_lt_compat; lra).
      split; [unfold Rdiv; apply Rmult_lt_0_compat; lra|].
      apply Rmult_lt_reg_r with (s - t); [lra|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l by lra. lra.
    Qed.

    Lemma zero_between e t s : t < s -> 0 < A e t -> A e s < 0 ->
      exists r u, t < r < s /\ 0 < u < 1 /\ r = t + (s - t) * u /\ A e r = 0.
    Proof.
      intros Hts H0 H1. set (u := A e t / (A e t - A e s)).
      assert (Hu : 0 < u < 1).
      { unfold u. assert (0 < / (A e t - A e s)) by (apply Rinv_0_lt_compat; lra).
        split; [unfold Rdiv; apply Rmult_lt_0_compat; lra|].
        apply Rmult_lt_reg_r with (A e t - A e s); [lra|]. unfold Rdiv.
        rewrite Rmult_assoc, Rinv_l by lra. lra. }
      exists (t + (s - t) * u), u. repeat split; try nra.
      rewrite A_mean. unfold u. field. lra.
    Qed.

    Lemma first_exit l t : t < 1 -> (forall e, In e l -> going e t) ->
      (forall e, In e l -> 0 <= A e 1) \/
      exists e r, In e l /\ t < r < 1 /\ A e r = 0 /\ A e 1 < 0 /\ 0 < A e t /\
        forall e', In e' l -> 0 <= A e' r.
    Proof.
      intros Ht. induction l as [|h l IH]; intros H; [left; easy|].
      destruct (H h (or_introl eq_refl)) as [Hh0 Hh].
      destruct IH as [Hall|(e & r & Hin & Hr & H0 & H1 & Hpos & Hall)].
      { intros e He. apply H. now right. }
      - destruct (Rle_lt_dec 0 (A h 1)) as [Hge|Hlt].
        { left. intros e [<-|He]; auto. }
        right. destruct (zero_between h t 1 Ht) as (r & u & Hr & Hu & Er & Z); [lra|trivial|].
        exists h, r. repeat split; try lra; [now left|].
        intros e' [<-|He]; [lra|]. rewrite Er, A_mean.
        destruct (H e' (or_intror He)) as [G _]. specialize (Hall e' He). nra.
      - destruct (Rle_lt_dec 0 (A h r)) as [Hge|Hlt].
        { right. exists e, r. repeat split; try lra; [now right|].
          intros e' [<-|He]; auto. }
        destruct (share t 1 r Hr) as (u & Hu & Er).
        assert (Hht : 0 < A h t).
        { destruct Hh as [|Hh]; trivial. destruct (Rle_lt_or_eq_dec _ _ Hh0) as [|Heq]; trivial.
          exfalso. rewrite Er, A_mean, <- Heq in Hlt. nra. }
        assert (Hh1 : A h 1 < 0).
        { rewrite Er, A_mean in Hlt. nra. }
        right. destruct (zero_between h t r ltac:(lra) Hht Hlt) as (r' & u' & Hr' & Hu' & Er' & Z).
        exists h, r'. repeat split; try lra; [now left|].
        intros e' [<-|He]; [lra|]. rewrite Er', A_mean.
        destruct (H e' (or_intror He)) as [G _]. specialize (Hall e' He). nra.
    Qed.

    Lemma walk n : forall L t s, (length L <= n)%nat ->
      (forall s' e, In s' mesh -> In e (edges s') -> A e 1 < 0 -> 0 < A e t -> In e L) ->
      0 <= t < 1 -> In s mesh -> (forall e, In e (edges s) -> going e t) ->
      exists s', In s' mesh /\ inside s' y /\
        val s (at_ t) <= exp (eps * ((1 - t) * apart x y)) * val s' y.
    Proof.
      induction n as [|n IH]; intros L t s Hlen HL Ht Hs Hgo;
        (assert (Hin : inside s (at_ t)) by (intros e He; apply (Hgo e He)));
        (destruct (first_exit (edges s) t (proj2 Ht) Hgo) as
          [Hall|(e & r & He & Hr & H0 & H1 & Hpos & Hall)];
        [exists s; split; [exact Hs|];
          assert (Hy' : inside s y) by (intros e He; rewrite <- at_1; now apply Hall);
          split; [exact Hy'|];
          pose proof (apart_at t 1 ltac:(lra)) as Ea; rewrite at_1 in Ea; rewrite <- Ea;
          now apply grows|]).
      { specialize (HL s e Hs He H1 Hpos). destruct L; [easy|simpl in Hlen; lia]. }
      assert (Har := Harea s Hs).
      assert (Hz : inside s (at_ r)) by (intros e' He'; now apply Hall).
      destruct (on_edge s e (at_ r) Har He Hz H0) as (u & Hu & Hb).
      destruct (Hedges s e Hs He) as [(s' & e' & Hs' & He' & Hm)|Hborder].
      2: { exfalso. assert (0 <= left_of e y); [|unfold A in H1; rewrite at_1 in H1; lra].
           apply (left_inside _ _ last y (Harea last Hlast)); [intros g Hg; left; now apply Hy|].
           intros v Hv. exact (Hborder last v Hlast Hv). }
      assert (Har' := Harea s' Hs').
      destruct (level_matched d P o s e s' e' u (at_ r) Har Har' He He' Hm Hb) as [Hval Hb'].
      (* not a corner, as these are not on the line *)
      assert (Hcorner : forall p, (p = from e \/ p = towards e) -> at_ r <> p).
      { intros p Hp Heq. apply (Hgeneral s p Hs); [|rewrite <- Heq; apply on_line].
        three He; subst e; cbn [from towards] in Hp; destruct Hp; subst p; simpl; auto. }
      assert (Hu' : 0 < u < 1).
      { destruct Hb as [Bx By]. split; [destruct (Rle_lt_or_eq_dec _ _ (proj1 Hu)) as [|E]|
          destruct (Rle_lt_or_eq_dec _ _ (proj2 Hu)) as [|E]]; trivial; exfalso.
        - apply (Hcorner (from e)); auto. rewrite (surjective_pairing (from e)).
          rewrite (surjective_pairing (at_ r)), Bx, By, <- E. f_equal; ring.
        - apply (Hcorner (towards e)); auto. rewrite (surjective_pairing (towards e)).
          rewrite (surjective_pairing (at_ r)), Bx, By, E. f_equal; ring. }
      assert (HeL : In e L) by now apply (HL s).
      destruct (in_split e L HeL) as (L1 & L2 & ->).
      destruct (IH (L1 ++ L2) r s') as (s'' & Hs'' & Hin'' & Hle); trivial; [| |lra| |].
      - rewrite app_length in *. simpl in Hlen. lia.
      - intros g e'' Hg He'' G1 G0.
        assert (Ht0 : 0 < A e'' t).
        { destruct (share t 1 r Hr) as (q & Hq & Eq). rewrite Eq, A_mean in G0. nra. }
        specialize (HL g e'' Hg He'' G1 Ht0). apply in_app_or in HL. apply in_or_app.
        destruct HL as [|[<-|]]; auto. lra.
      - intros e'' He''.
        destruct (other_edges s' e' e'' (1 - u) (at_ r) Har' He' He'' Hb' ltac:(lra)) as
          [[-> Z]|G]; [|split; [left|left]; exact G].
        split; [unfold A; lra|right].
        replace (A e' 1) with (- A e 1); [lra|]. destruct Hm as (Hf & Hw & _).
        unfold A, left_of, cross. rewrite Hf, Hw. ring.
      - exists s''. repeat split; trivial.
        assert (Hg : val s (at_ t) <= exp (eps * ((r - t) * apart x y)) * val s (at_ r)).
        { rewrite <- apart_at by lra. now apply grows. }
        rewrite Hval in Hg. eapply Rle_trans; [exact Hg|].
        eapply Rle_trans; [apply Rmult_le_compat_l; [left; apply exp_pos|exact Hle]|].
        rewrite <- Rmult_assoc, <- exp_plus. right. f_equal. f_equal. ring.
    Qed.

    Lemma general_segment s : In s mesh -> within s x ->
      val s x <= exp (eps * apart x y) * val last y.
    Proof.
      intros Hs Hx.
      set (L := flat_map edges mesh).
      destruct (walk (length L) L 0 s (Nat.le_refl _)) as (s' & Hs' & Hin & Hle); trivial; [|lra| |].
      - intros s' e Hs' He _ _. apply in_flat_map. eauto.
      - intros e He. assert (0 < A e 0) by (unfold A; rewrite at_0; now apply Hx).
        split; [lra|now left].
      - rewrite at_0 in Hle. replace ((1 - 0) * apart x y) with (apart x y) in Hle by ring.
        enough (s' = last) by now subst s'.
        destruct (Hparted s' last Hs' Hlast) as [|[(e & He & H)|(e & He & H)]]; trivial; exfalso.
        + pose proof (right_within _ _ last y (Harea _ Hlast) Hy H (edge_ends s' e (Harea _ Hs') He)).
          specialize (Hin e He). unfold left_of in Hin. lra.
        + pose proof (Hy e He) as Hpos.
          assert (0 <= cross (towards e) (from e) y).
          { apply (left_inside _ _ s' y (Harea _ Hs') Hin). intros v Hv. specialize (H v Hv).
            unfold left_of, cross in *. lra. }
          unfold left_of, cross in *. lra.
    Qed.
  End Segment.

  (** ** Points that are on no bad line *)

  Definition line : Type := R * R * R.
  Definition on (l : line) (z : point) : R := let '(a, b, c) := l in a * fst z + b * snd z + c.
  Definition proper_line (l : line) : Prop := let '(a, b, _) := l in a <> 0 \/ b <> 0.
  Definition box (c : point) (r : R) (z : point) : Prop :=
    Rabs (fst z - fst c) < r /\ Rabs (snd z - snd c) < r.

  Lemma on_near l c z r : box c r z -> Rabs (on l z - on l c) <=
    (let '(a, b, _) := l in (Rabs a + Rabs b) * r).
  Proof.
    destruct l as [[a b] g]. intros [Hx Hy']. cbn [on].
    replace (a * fst z + b * snd z + g - (a * fst c + b * snd c + g)) with
      (a * (fst z - fst c) + b * (snd z - snd c)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    pose proof (Rabs_pos a). pose proof (Rabs_pos b). nra.
  Qed.

  Lemma stays l c : on l c <> 0 -> exists r, 0 < r /\ forall z, box c r z ->
    (0 < on l c -> 0 < on l z) /\ on l z <> 0.
  Proof.
    intros H. destruct l as [[a b] g]. set (l := (a, b, g)) in *.
    pose proof (Rabs_pos a). pose proof (Rabs_pos b). pose proof (Rabs_pos_lt _ H) as Hp.
    set (k := Rabs a + Rabs b + 1).
    exists (Rabs (on l c) / (2 * k)).
    assert (Hk : 0 < / (2 * k)) by (apply Rinv_0_lt_compat; unfold k; lra).
    split; [unfold Rdiv; now apply Rmult_lt_0_compat|].
    intros z Hz. pose proof (on_near l c z _ Hz) as Hn. cbn [l] in Hn.
    assert (Hsmall : (Rabs a + Rabs b) * (Rabs (on l c) / (2 * k)) <= Rabs (on l c) / 2).
    { apply Rle_trans with (k * (Rabs (on l c) / (2 * k))).
      - apply Rmult_le_compat_r; [left; unfold Rdiv; now apply Rmult_lt_0_compat|unfold k; lra].
      - right. field. unfold k; lra. }
    assert (Hd' : Rabs (on l z - on l c) <= Rabs (on l c) / 2) by (unfold l in *; lra).
    revert Hd' Hp. unfold Rabs. repeat destruct Rcase_abs; intros; split; intros; lra.
  Qed.

  Lemma avoid (ls : list line) : (forall l, In l ls -> proper_line l) -> forall c r, 0 < r ->
    exists c' r', 0 < r' /\ (forall z, box c' r' z -> box c r z) /\
      forall z l, box c' r' z -> In l ls -> on l z <> 0.
  Proof.
    induction ls as [|l ls IH]; intros Hok c r Hr; [exists c, r; split; [trivial|split; [trivial|intros z l _ []]]|].
    destruct (IH (fun l Hl => Hok l (or_intror Hl)) c r Hr) as (c1 & r1 & Hr1 & Hb1 & H1).
    assert (Hc2 : exists c2, box c1 (r1 / 2) c2 /\ on l c2 <> 0).
    { assert (Hself : box c1 (r1 / 2) c1) by (split; rewrite Rminus_diag_eq, Rabs_R0; lra).
      destruct (Req_dec (on l c1) 0) as [Hz|]; [|now exists c1].
      assert (Hl := Hok l (or_introl eq_refl)). destruct l as [[a b] g]. cbn in Hl, Hz.
      destruct Hl as [Ha|Hb].
      - exists (fst c1 + r1 / 4, snd c1). split.
        + split; cbn [fst snd];
            [replace (fst c1 + r1 / 4 - fst c1) with (r1 / 4) by ring; rewrite Rabs_pos_eq; lra|
             rewrite Rminus_diag_eq, Rabs_R0; lra].
        + cbn. replace (a * (fst c1 + r1 / 4) + b * snd c1 + g) with (a * (r1 / 4)) by lra.
          apply Rmult_integral_contrapositive. split; lra.
      - exists (fst c1, snd c1 + r1 / 4). split.
        + split; cbn [fst snd];
            [rewrite Rminus_diag_eq, Rabs_R0; lra|
             replace (snd c1 + r1 / 4 - snd c1) with (r1 / 4) by ring; rewrite Rabs_pos_eq; lra].
        + cbn. replace (a * fst c1 + b * (snd c1 + r1 / 4) + g) with (b * (r1 / 4)) by lra.
          apply Rmult_integral_contrapositive. split; lra. }
    destruct Hc2 as (c2 & Hbox & Hne). destruct (stays l c2 Hne) as (r2 & Hr2 & H2).
    exists c2, (Rmin r2 (r1 / 2)).
    assert (Hin : forall z, box c2 (Rmin r2 (r1 / 2)) z -> box c1 r1 z).
    { intros z [Hx Hy']. destruct Hbox as [Bx By].
      pose proof (Rmin_r r2 (r1 / 2)). split.
      - replace (fst z - fst c1) with ((fst z - fst c2) + (fst c2 - fst c1)) by ring.
        eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
      - replace (snd z - snd c1) with ((snd z - snd c2) + (snd c2 - snd c1)) by ring.
        eapply Rle_lt_trans; [apply Rabs_triang|]. lra. }
    split; [apply Rmin_pos; lra|split].
    - intros z Hz. now apply Hb1, Hin.
    - intros z l' Hz [<-|Hl'].
      + apply H2. destruct Hz as [Hx Hy']. pose proof (Rmin_l r2 (r1 / 2)). split; lra.
      + apply H1; auto.
  Qed.

  (** A small box around a point strictly inside, near any point inside. *)
  Definition line_of (a b : point) : line :=
    (- (snd b - snd a), fst b - fst a,
     - ((fst b - fst a) * snd a) + (snd b - snd a) * fst a).

  Lemma on_line_of a b z : on (line_of a b) z = cross a b z.
  Proof. unfold on, line_of, cross. ring. Qed.

  Definition middle (t : triangle) : point :=
    ((fst (corner0 t) + fst (corner1 t) + fst (corner2 t)) / 3,
     (snd (corner0 t) + snd (corner1 t) + snd (corner2 t)) / 3).

  Lemma near_within t z r : In t mesh -> inside t z -> 0 < r ->
    exists c r', 0 < r' /\ forall w, box c r' w -> within t w /\ box z r w.
  Proof.
    intros Ht Hz Hr. assert (Ha := Harea t Ht). set (c := middle t).
    set (k := Rabs (fst c - fst z) + Rabs (snd c - snd z) + 1).
    pose proof (Rabs_pos (fst c - fst z)) as K1. pose proof (Rabs_pos (snd c - snd z)) as K2.
    assert (Hs : exists s, 0 < s < 1 /\ s * k <= r / 2).
    { exists (Rmin (1 / 2) (r / 2 / k)).
      assert (0 < / k) by (apply Rinv_0_lt_compat; unfold k; lra).
      assert (0 < r / 2 / k) by (unfold Rdiv; apply Rmult_lt_0_compat; lra).
      pose proof (Rmin_l (1 / 2) (r / 2 / k)). pose proof (Rmin_r (1 / 2) (r / 2 / k)) as Hm.
      split; [split; [apply Rmin_pos; lra|lra]|].
      apply Rmult_le_compat_r with (r := k) in Hm; [|unfold k; lra].
      replace (r / 2 / k * k) with (r / 2) in Hm by (field; unfold k; lra). exact Hm. }
    destruct Hs as (s & Hs & Hsk).
    set (q := (fst z + s * (fst c - fst z), snd z + s * (snd c - snd z)) : point).
    assert (Hq : forall e, In e (edges t) -> 0 < left_of e q).
    { intros e He. assert (Hm : left_of e c = area t / 3).
      { three He; subst e; unfold left_of, cross, area, cross, c, middle; cbn [from towards fst snd];
          field. }
      replace (left_of e q) with ((1 - s) * left_of e z + s * left_of e c)
        by (unfold left_of, cross, q; cbn [fst snd]; ring).
      rewrite Hm. specialize (Hz e He). nra. }
    assert (Hstay : forall l, (forall e, In e l -> 0 < left_of e q) ->
      exists r', 0 < r' /\ forall w, box q r' w -> forall e, In e l -> 0 < left_of e w).
    { induction l as [|e l IH]; intros H; [exists 1; split; [lra|easy]|].
      destruct IH as (r1 & Hr1 & H1); [intros; apply H; now right|].
      assert (He := H e (or_introl eq_refl)).
      destruct (stays (line_of (from e) (towards e)) q) as (r2 & Hr2 & H2).
      { rewrite on_line_of. unfold left_of in He. lra. }
      exists (Rmin r1 r2). split; [now apply Rmin_pos|].
      intros w [Wx Wy] e' [<-|He'].
      - unfold left_of. rewrite <- on_line_of. apply H2; [|rewrite on_line_of; exact He].
        pose proof (Rmin_r r1 r2). split; lra.
      - apply H1; trivial. pose proof (Rmin_l r1 r2). split; lra. }
    destruct (Hstay (edges t) Hq) as (r1 & Hr1 & H1).
    exists q, (Rmin r1 (r / 2)). split; [apply Rmin_pos; lra|].
    intros w [Wx Wy]. split.
    - intros e He. apply H1; trivial. pose proof (Rmin_l r1 (r / 2)). split; lra.
    - pose proof (Rmin_r r1 (r / 2)) as Hmin.
      assert (Hqx : Rabs (fst q - fst z) <= r / 2 /\ Rabs (snd q - snd z) <= r / 2).
      { unfold q. cbn [fst snd].
        replace (fst z + s * (fst c - fst z) - fst z) with (s * (fst c - fst z)) by ring.
        replace (snd z + s * (snd c - snd z) - snd z) with (s * (snd c - snd z)) by ring.
        rewrite !Rabs_mult, (Rabs_pos_eq s) by lra. unfold k in Hsk. split; nra. }
      split.
      + replace (fst w - fst z) with ((fst w - fst q) + (fst q - fst z)) by ring.
        eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
      + replace (snd w - snd z) with ((snd w - snd q) + (snd q - snd z)) by ring.
        eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
  Qed.

  (** ** Distances *)
  Lemma apart_sym z w : apart z w = apart w z.
  Proof. unfold apart. f_equal. ring. Qed.

  Lemma apart_triangle a b c : apart a c <= apart a b + apart b c.
  Proof.
    pose proof (apart_nonneg a b). pose proof (apart_nonneg b c).
    apply square_le; [lra|].
    pose proof (apart_square a b) as E1. pose proof (apart_square b c) as E2.
    rewrite (apart_square a c).
    set (p := fst a - fst b) in *. set (q := snd a - snd b) in *.
    set (u := fst b - fst c) in *. set (v := snd b - snd c) in *.
    replace (fst a - fst c) with (p + u) by (unfold p, u; ring).
    replace (snd a - snd c) with (q + v) by (unfold q, v; ring).
    assert (Hc : p * u + q * v <= apart a b * apart b c).
    { apply square_le; [now apply Rmult_le_pos|]. rewrite Rpow_mult_distr, E1, E2. apply cauchy. }
    nra.
  Qed.

  Lemma apart_box z w r : box z r w -> apart z w <= 2 * r.
  Proof.
    intros [Hx Hy']. assert (0 < r) by (eapply Rle_lt_trans; [apply Rabs_pos|exact Hx]).
    apply square_le; [lra|]. rewrite apart_square.
    apply Rabs_def2 in Hx. apply Rabs_def2 in Hy'. nra.
  Qed.

  Lemma in_the_limit v w k : 0 <= k -> 0 <= w ->
    (forall r, 0 < r -> v <= exp (k * r) * w) -> v <= w.
  Proof.
    intros Hk Hw H. apply Rnot_lt_le. intros Hlt.
    destruct (Rle_lt_or_eq_dec _ _ Hw) as [Hw'|<-]; [|specialize (H 1 Rlt_0_1); lra].
    assert (Hq : 1 < v / w).
    { apply Rmult_lt_reg_r with w; trivial. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    assert (Hln : 0 < ln (v / w)) by (rewrite <- ln_1; apply ln_increasing; lra).
    set (r := ln (v / w) / (2 * (k + 1))).
    assert (Hr : 0 < r).
    { unfold r, Rdiv. apply Rmult_lt_0_compat; trivial. apply Rinv_0_lt_compat. lra. }
    specialize (H r Hr).
    assert (Hkr : k * r < ln (v / w)).
    { assert (Er : 2 * (k + 1) * r = ln (v / w)) by (unfold r; field; lra). nra. }
    apply exp_increasing in Hkr. rewrite exp_ln in Hkr by lra.
    assert (exp (k * r) * w < v / w * w) by (apply Rmult_lt_compat_r; trivial).
    replace (v / w * w) with v in * by (field; lra). lra.
  Qed.

  Lemma level_nonneg t z : In t mesh -> inside t z -> 0 <= val t z.
  Proof.
    intros Ht Hz. destruct (inside_weights t z (Harea t Ht) Hz) as (H0 & H1 & H2).
    apply blend_nonneg; auto.
  Qed.

  Lemma exp_le_exp u v : u <= v -> exp u <= exp v.
  Proof. intros [H|H]; [left; now apply exp_increasing|subst; lra]. Qed.

  Theorem private_inside s t x y : In s mesh -> In t mesh -> inside s x -> inside t y ->
    val s x <= exp (eps * apart x y) * val t y.
  Proof.
    intros Hs Ht Hx Hy.
    apply (in_the_limit _ _ (8 * eps)); [lra| |].
    { apply Rmult_le_pos; [left; apply exp_pos|now apply level_nonneg]. }
    intros r Hr.
    destruct (near_within s x r Hs Hx Hr) as (cx & rx & Hrx & Hbx).
    set (corners_all := flat_map corners mesh).
    destruct (avoid (map (fun v => (1, 0, - fst v) : line) corners_all)) with (c := cx) (r := rx)
      as (cx' & rx' & Hrx' & Hbx' & Hxv); trivial.
    { intros l Hl. apply in_map_iff in Hl. destruct Hl as (v & <- & _). left. lra. }
    assert (Hself : forall c q, 0 < q -> box c q c)
      by (intros c q Hq; split; rewrite Rminus_diag_eq, Rabs_R0; trivial).
    set (x' := cx').
    destruct (Hbx x' (Hbx' x' (Hself x' rx' Hrx'))) as [Wx Bx].
    assert (Hne : forall v, In v corners_all -> fst x' <> fst v).
    { intros v Hv Heq. apply (Hxv x' (1, 0, - fst v)); [now apply Hself| |cbn; lra].
      apply in_map_iff. now exists v. }
    destruct (near_within t y r Ht Hy Hr) as (cy & ry & Hry & Hby).
    destruct (avoid (map (fun v => (snd v - snd x', - (fst v - fst x'),
        - fst x' * (snd v - snd x') + snd x' * (fst v - fst x')) : line) corners_all))
      with (c := cy) (r := ry) as (y' & ry' & Hry' & Hby' & Hyv); trivial.
    { intros l Hl. apply in_map_iff in Hl. destruct Hl as (v & <- & Hv). right.
      specialize (Hne v Hv). lra. }
    destruct (Hby y' (Hby' y' (Hself y' ry' Hry'))) as [Wy By].
    assert (Hgen : forall g v, In g mesh -> In v (corners g) -> cross x' y' v <> 0).
    { intros g v Hg Hv Heq. assert (Hin : In v corners_all) by (apply in_flat_map; eauto).
      apply (Hyv y' (snd v - snd x', - (fst v - fst x'),
        - fst x' * (snd v - snd x') + snd x' * (fst v - fst x'))); [now apply Hself| |].
      - apply in_map_iff. now exists v.
      - unfold cross in Heq. cbn. lra. }
    assert (Ix : inside s x') by (intros e He; left; now apply Wx).
    assert (Iy : inside t y') by (intros e He; left; now apply Wy).
    pose proof (grows s x x' Hs Hx Ix) as G1.
    pose proof (general_segment x' y' Hgen t Ht Wy s Hs Wx) as G2.
    pose proof (grows t y' y Ht Iy Hy) as G3.
    pose proof (apart_box x x' r Bx) as D1. pose proof (apart_box y y' r By) as D2.
    pose proof (apart_triangle x' x y') as T1. pose proof (apart_triangle x y y') as T2.
    rewrite (apart_sym x' x) in T1. rewrite (apart_sym y' y) in G3.
    pose proof (level_nonneg t y Ht Hy) as V.
    apply Rle_trans with (exp (eps * apart x x') * (exp (eps * apart x' y') *
      (exp (eps * apart y y') * val t y))).
    - eapply Rle_trans; [exact G1|]. apply Rmult_le_compat_l; [left; apply exp_pos|].
      eapply Rle_trans; [exact G2|]. apply Rmult_le_compat_l; [left; apply exp_pos|]. exact G3.
    - rewrite <- !Rmult_assoc, <- !exp_plus. apply Rmult_le_compat_r; trivial.
      apply exp_le_exp. nra.
  Qed.
End Walk.
