// What rows of open calls say in labels now: a settle repeats it.
import type { Mine } from "./calls.ts";
import type { Ask } from "./line.ts";
import { texts } from "./literal.ts";

export async function labelled(
  ask: Ask,
  s: string,
  mine: ReadonlyMap<string, Mine>,
): Promise<void> {
  const attempts = [...mine].flatMap(([attempt, { row }]) =>
    Object.keys(row.labels).length > 0 ? [attempt] : [],
  );
  if (attempts.length === 0) return;
  const rows = await ask({
    text: `SELECT attempt, labels FROM ${s}.entry WHERE attempt = ANY ($1::text[]) AND kind = 0 AND labels IS NOT NULL`,
    values: [texts(attempts)],
  });
  for (const { attempt, labels } of rows) {
    const call = mine.get(attempt!);
    if (call) call.row.labels = JSON.parse(labels!) as typeof call.row.labels;
  }
}
