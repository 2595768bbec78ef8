// Numbers as bars, to be looked at.

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;

/** As wide as its share of the largest, to an eighth of a character. What is more than nothing can be seen. */
export function drawBar(value: number, largest: number, width: number): string {
  if (!(value > 0) || !(largest > 0)) return "";
  const eighths = Math.max(1, Math.round((Math.min(value, largest) / largest) * width * 8));
  return "█".repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}
