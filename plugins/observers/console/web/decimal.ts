// Amounts as plain numbers, without the page: tests read it too.

/** Nano-dollars as a plain number of dollars, exact: "12.5". */
export const decimalOf = (nano: string): string => {
  const digits = nano.padStart(10, "0");
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, "");
};
