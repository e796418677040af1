"""Coupling mechanisms and optimal targets (Kawamoto and Murakami, Allerton 2019, §VI): one
mechanism for every auxiliary input.

An auxiliary input t says which distribution λ_t an input x is drawn from. The mechanism of t
follows a plan of (λ_t, μ_t), so that its output has the distribution μ_t exactly: one common μ
(no information on t at all), or outputs that are pairwise (ε, δ)-close.
"""
