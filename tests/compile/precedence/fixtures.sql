Operators side by side, and how Spark groups them. All pairs of operators are compared with Spark's own parser by
test_precedence.py; these are the ones that sqlglot reads in another way.

-- case: & before |
v | 4 & 2
-- expect
v | (4 & 2)

-- case: & before ^, ^ before |
a | b ^ c & d
-- expect
a | (b ^ (c & d))

-- case: shifts before &
a & b << c
-- expect
a & (b << c)

-- case: || is on the level of +
'1' || 2 + 1
-- expect
('1' || 2) + 1

-- case: || after *
a || b * c
-- expect
a || (b * c)

-- case: >>> is a shift
a + b >>> c & d
-- expect
(shiftrightunsigned(a + b, c)) & d

-- case: >>> that ends a type is none
cast(a as array<array<array<int>>>) = b
-- expect
cast(a as array<array<array<int>>>) = b

-- case: comparisons are on one level
a = b < c
-- expect
(a = b) < c

-- case: a predicate applies to the comparison before it
a = b is null
-- expect
(a = b) is null

-- case: so does IN
a = b in (true, false)
-- expect
(a = b) in (true, false)

-- case: and its negation
a = b not in (true)
-- expect
not ((a = b) in (true))

-- case: the pattern of LIKE may be a comparison
a like b = c
-- expect
a like (b = c)

-- case: so may the bounds of BETWEEN
a between b and c = d
-- expect
a between b and (c = d)

-- case: <=> is a comparison, IS NOT DISTINCT FROM a predicate
a <=> b = c or a is not distinct from b = c
-- expect
((a <=> b) = c) or (a is not distinct from (b = c))

-- case: COLLATE binds tightest
a + b collate utf8_lcase
-- expect
a + (b collate utf8_lcase)

-- case: a sign belongs to its number
-128::tinyint
-- expect
(-128)::tinyint

-- case: brackets that are written count
(a | b) & c = (d is null)
-- expect
((a | b) & c) = (d is null)

-- case: a call is an operand, whatever sqlglot makes of it
x * mod(a, b) || shiftleft(c, d)
-- expect
(x * mod(a, b)) || shiftleft(c, d)

-- case: IS UNKNOWN at the end of the text
a <> b is unknown
-- expect
(a <> b) is null
