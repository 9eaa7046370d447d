// What PTX instructions compute, as "Instructions" of the PTX ISA describe them.
//
// A register holds bits: pred is bool, everything else an unsigned integer of its width. A float
// is unpacked for one operation and packed again, so a NaN that passes through a `mov` keeps its
// bits. The translator sets FLUSHES (whether .ftz is obeyed), EXPONENTIAL_ULPS and TRUNCATES.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace ptx {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

template <class T> struct Twice;
template <> struct Twice<u16> { using type = u32; };
template <> struct Twice<s16> { using type = s32; };
template <> struct Twice<u32> { using type = u64; };
template <> struct Twice<s32> { using type = s64; };
template <> struct Twice<u64> { using type = unsigned __int128; };
template <> struct Twice<s64> { using type = __int128; };

template <class T> constexpr bool IS_SIGNED = T(-1) < T(0);

// --- integers: results wrap around -----------------------------------------------------------

// The arithmetic is done in 64 bits without a sign, where wrapping is defined.
template <class T> inline T add(u64 a, u64 b) { return T(a + b); }
template <class T> inline T sub(u64 a, u64 b) { return T(a - b); }
template <class T> inline T mul_lo(u64 a, u64 b) { return T(a * b); }
template <class T> inline T mad_lo(u64 a, u64 b, u64 c) { return T(a * b + c); }
template <class T> inline typename Twice<T>::type mul_wide(T a, T b)
{
    return typename Twice<T>::type(a) * b;
}
template <class T> inline typename Twice<T>::type mad_wide(T a, T b, typename Twice<T>::type c)
{
    return mul_wide(a, b) + c;
}
template <class T> inline T mul_hi(T a, T b) { return T(mul_wide(a, b) >> 8 * sizeof(T)); }
template <class T> inline T div(T a, T b, int line)
{
    if (!b) host::fail("line %d of the PTX: a division by zero", line);
    return IS_SIGNED<T> && b == T(-1) ? T(0 - u64(a)) : T(a / b);
}
template <class T> inline T rem(T a, T b, int line)
{
    if (!b) host::fail("line %d of the PTX: a remainder by zero", line);
    return IS_SIGNED<T> && b == T(-1) ? T(0) : T(a % b);
}
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T neg(T a) { return T(0 - u64(a)); }
template <class T> inline T abs(T a) { return a < 0 ? neg(a) : a; }

// An amount past the width shifts everything out: it is not taken modulo the width.
template <class T> inline T shl(T a, u32 by) { return by < 8 * sizeof(T) ? T(u64(a) << by) : T(0); }
template <class T> inline T shr(T a, u32 by)
{
    constexpr u32 most = 8 * sizeof(T) - 1;
    return by <= most ? T(a >> by) : IS_SIGNED<T> ? T(a >> most) : T(0);
}

template <class T> inline T bits_and(T a, T b) { return T(a & b); }
template <class T> inline T bits_or(T a, T b) { return T(a | b); }
template <class T> inline T bits_xor(T a, T b) { return T(a ^ b); }
template <class T> inline T bits_not(T a) { return T(~a); }
template <> inline bool bits_not(bool a) { return !a; }

// Each bit of the result: what the table says of the bits of a, b and c in its place.
inline u32 lop3(u32 a, u32 b, u32 c, u32 table)
{
    u32 found = 0;
    for (u32 n = 0; n < 8; ++n)
        if (table >> n & 1)
            found |= (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
    return found;
}

// Of the eight bytes of b and a, the four that a selector names; its bit 3 spreads the sign.
inline u32 prmt(u32 a, u32 b, u32 selector)
{
    const u64 bytes = u64(b) << 32 | a;
    u32 found = 0;
    for (int n = 0; n < 4; ++n) {
        const u32 chosen = selector >> 4 * n & 15;
        u32 byte = u32(bytes >> 8 * (chosen & 7)) & 255;
        if (chosen & 8) byte = byte & 128 ? 255 : 0;
        found |= byte << 8 * n;
    }
    return found;
}

// b with the lowest `count` bits of a put in from bit `at` on.
inline u32 bfi(u32 a, u32 b, u32 at, u32 count)
{
    at &= 255;
    count &= 255;
    for (u32 n = 0; n < count && at + n < 32; ++n)
        b = (b & ~(1u << (at + n))) | (a >> n & 1u) << (at + n);
    return b;
}

// --- floats ----------------------------------------------------------------------------------

constexpr u32 NAN_BITS = 0x7fffffff;  // of every NaN that an operation makes
constexpr u32 SIGN = 0x80000000;

inline float unpacked(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
inline u32 packed(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }

template <bool FTZ> inline float operand(u32 bits)
{
    if (FTZ && FLUSHES && !(bits & 0x7f800000)) bits &= SIGN;
    return unpacked(bits);
}
template <bool FTZ> inline u32 result(float x)
{
    if (x != x) return NAN_BITS;
    return packed(operand<FTZ>(packed(x)));
}

template <bool FTZ> inline u32 add_f32(u32 a, u32 b) { return result<FTZ>(operand<FTZ>(a) + operand<FTZ>(b)); }
template <bool FTZ> inline u32 sub_f32(u32 a, u32 b) { return result<FTZ>(operand<FTZ>(a) - operand<FTZ>(b)); }
template <bool FTZ> inline u32 mul_f32(u32 a, u32 b) { return result<FTZ>(operand<FTZ>(a) * operand<FTZ>(b)); }
template <bool FTZ> inline u32 div_f32(u32 a, u32 b) { return result<FTZ>(operand<FTZ>(a) / operand<FTZ>(b)); }
template <bool FTZ> inline u32 fma_f32(u32 a, u32 b, u32 c)
{
    return result<FTZ>(fmaf(operand<FTZ>(a), operand<FTZ>(b), operand<FTZ>(c)));
}
// Rounded down: the product is exact in float64; where the sum is not, its error's sign is.
template <bool FTZ> inline u32 fma_down_f32(u32 a, u32 b, u32 c)
{
    const double product = double(operand<FTZ>(a)) * operand<FTZ>(b), addend = operand<FTZ>(c);
    const double sum = product + addend, back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);  // of sum, exactly
    float x = float(sum);
    if (x > sum || (x == sum && error < 0)) x = nextafterf(x, -INFINITY);
    return result<FTZ>(x);
}
template <bool FTZ> inline u32 sqrt_f32(u32 a) { return result<FTZ>(sqrtf(operand<FTZ>(a))); }
template <bool FTZ> inline u32 rcp_f32(u32 a) { return result<FTZ>(1.0f / operand<FTZ>(a)); }
template <bool FTZ> inline u32 neg_f32(u32 a) { return packed(operand<FTZ>(a)) ^ SIGN; }
template <bool FTZ> inline u32 abs_f32(u32 a) { return packed(operand<FTZ>(a)) & ~SIGN; }
inline u32 copysign_f32(u32 sign, u32 size) { return (sign & SIGN) | (size & ~SIGN); }

// Move a result by as many units in the last place as an approximation may be off, -n to n by a
// hash of the operand: the same operand has the same result wherever it occurs.
template <int ULPS> inline u32 shaken(u32 bits, u32 operand)
{
    const u32 exponent = bits >> 23 & 255;
    if (ULPS == 0 || exponent < 2 || exponent > 253) return bits;
    u32 hash = operand * 2654435761u;
    hash = (hash ^ hash >> 15) * 2246822519u;
    hash ^= hash >> 13;
    return bits + hash % (2 * ULPS + 1) - ULPS;
}
template <bool FTZ> inline u32 ex2_f32(u32 a)
{
    const u32 exact = result<FTZ>(exp2f(operand<FTZ>(a)));
    return operand<FTZ>(a) == 0.0f ? exact : shaken<EXPONENTIAL_ULPS>(exact, a);
}
template <bool FTZ> inline u32 rcp_approx_f32(u32 a)
{
    return shaken<(EXPONENTIAL_ULPS > 0)>(rcp_f32<FTZ>(a), a);
}

// Of a number and NaN the number; -0 is less than +0.
template <bool FTZ, bool LARGER> inline u32 extreme_f32(u32 a, u32 b)
{
    const float x = operand<FTZ>(a), y = operand<FTZ>(b);
    if (x != x) return result<FTZ>(y);
    if (y != y) return result<FTZ>(x);
    if (x == y) return (packed(x) & SIGN) == (LARGER ? SIGN : 0) ? packed(y) : packed(x);
    return packed((x > y) == LARGER ? x : y);
}
template <bool FTZ> inline u32 max_f32(u32 a, u32 b) { return extreme_f32<FTZ, true>(a, b); }
template <bool FTZ> inline u32 min_f32(u32 a, u32 b) { return extreme_f32<FTZ, false>(a, b); }

// Clamped to 0 .. 1; NaN and -0 become +0.
template <bool FTZ> inline u32 saturated_f32(u32 a)
{
    const float x = operand<FTZ>(a);
    return x > 0.0f ? packed(x < 1.0f ? x : 1.0f) : 0;
}

// --- conversions -----------------------------------------------------------------------------

inline u32 from_half(u16 half)
{
    const u32 sign = u32(half >> 15) << 31, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return mantissa ? NAN_BITS : sign | 0x7f800000;
    if (exponent) return sign | (exponent + 112) << 23 | mantissa << 13;
    return sign | packed(ldexpf(float(mantissa), -24));
}

// To nearest even in a type of so many bits of mantissa and exponent.
template <int MANTISSA, int EXPONENT> inline u16 narrowed(u32 bits)
{
    constexpr int bias = (1 << (EXPONENT - 1)) - 1, top = (1 << EXPONENT) - 1;
    const float x = unpacked(bits);
    const u32 sign = bits >> 31 << 15;
    if (x != x) return 0x7fff;
    if (isinf(x)) return u16(sign | top << MANTISSA);
    const int exponent = x == 0.0f ? 1 - bias : fmax(ilogbf(x), 1 - bias);
    // In units of the last place; it may round up into the next exponent, which the sum allows.
    const u32 units = u32(nearbyint(ldexp(fabs(double(x)), MANTISSA - exponent)));
    if (units >> MANTISSA == 0) return u16(sign | units);  // below the normal numbers
    const u32 found = (u32(exponent + bias - 1) << MANTISSA) + units;
    return u16(sign | (found >> MANTISSA >= u32(top) ? u32(top) << MANTISSA : found));
}
inline u16 to_half(u32 bits) { return narrowed<10, 5>(bits); }
inline u16 to_bfloat(u32 bits) { return narrowed<7, 8>(bits); }

// --- comparisons: each is false if an operand is NaN; its unordered twin (LTU, ..) is true ------

template <bool FTZ> inline bool unordered(u32 a, u32 b)
{
    return operand<FTZ>(a) != operand<FTZ>(a) || operand<FTZ>(b) != operand<FTZ>(b);
}

}  // namespace ptx
