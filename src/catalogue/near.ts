import { distance } from "../lib/text.ts";

/** How many names a person wants to read. */
const SHOWN = 3;
/** Beyond this, two names are not a slip of the finger apart; and what is longer is not compared. */
const LONGEST = 80;

/**
 * The ids that were probably meant, nearest first: the same name with another provider, then a name inside a longer
 * one, then a few letters of difference (at most one in three). Runs on the way to a 404, so it looks at lengths first.
 */
export function near(wanted: string, ids: Iterable<string>): readonly string[] {
  if (wanted === "" || wanted.length > LONGEST) return [];
  const asked = wanted.toLowerCase();
  const name = bare(asked);
  const found: { id: string; score: number }[] = [];
  for (const id of ids) {
    if (id.length > LONGEST) continue;
    const score = far(asked, name, id.toLowerCase());
    if (score !== undefined) found.push({ id, score });
  }
  return found
    .toSorted((a, b) => a.score - b.score || (a.id < b.id ? -1 : 1))
    .slice(0, SHOWN)
    .map(({ id }) => id);
}

const bare = (id: string): string => id.slice(id.indexOf("/") + 1);

function far(asked: string, name: string, id: string): number | undefined {
  const other = bare(id);
  if (other === name || other.endsWith(`/${name}`)) return 0;
  const inside = name.length >= 4 && (other.includes(name) || name.includes(other));
  if (inside && Math.min(name.length, other.length) >= 4)
    return 1 + Math.abs(other.length - name.length) / 100;
  const allowed = Math.floor(Math.max(asked.length, id.length) / 3);
  if (Math.abs(asked.length - id.length) > allowed) return undefined;
  const d = distance(asked, id);
  return d <= allowed ? 2 + d : undefined;
}
