const NANO = 1_000_000_000;

/**
 * Formats nano-dollars as "0.001234". The function uses integers, because amounts of money are
 * never floating-point numbers.
 */
export function formatUsd(nano: bigint): string {
  const sign = nano < 0n ? "-" : "";
  const amount = nano < 0n ? -nano : nano;
  // Amounts below 9 million dollars are exact as a JavaScript number, which is faster than a
  // bigint.
  const isSmall = amount <= Number.MAX_SAFE_INTEGER;
  const rest = isSmall ? Number(amount) % NANO : Number(amount % BigInt(NANO));
  const whole = isSmall ? (Number(amount) - rest) / NANO : amount / BigInt(NANO);
  if (rest === 0) return `${sign}${whole}`;
  const digits = String(NANO + rest);
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === ZERO) end--;
  return `${sign}${whole}.${digits.slice(1, end)}`;
}

const ZERO = 48;
