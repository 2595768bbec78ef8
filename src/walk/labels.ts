// What hooks note of a request: few and short, for every row of it keeps them.
import { fail } from "../model/error.ts";

/** Of a label's name, and of its value. */
const CHARACTERS = 256;
const LABELS = 32;

/** These labels and one more. */
export function noted(
  labels: Record<string, string> | undefined,
  name: string,
  value: string,
): Record<string, string> {
  const all = labels ?? (Object.create(null) as Record<string, string>);
  if (name.length > CHARACTERS || value.length > CHARACTERS)
    fail("internal", `A label may have ${CHARACTERS} characters.`);
  if (!Object.hasOwn(all, name) && Object.keys(all).length >= LABELS)
    fail("internal", `A request may have ${LABELS} labels.`);
  all[name] = value;
  return all;
}
