// What hooks note of a request: few and short, for every row of it keeps them.
import { fail } from "../../model/error.ts";

/** Of a label's name, and of its value. */
const MAX_LABEL_LENGTH = 256;
const MAX_LABELS = 32;

/** These labels and one more. */
export function addLabel(
  labels: Record<string, string> | undefined,
  name: string,
  value: string,
): Record<string, string> {
  const all = labels ?? (Object.create(null) as Record<string, string>);
  if (name.length > MAX_LABEL_LENGTH || value.length > MAX_LABEL_LENGTH)
    fail("internal", `A label may have ${MAX_LABEL_LENGTH} characters.`);
  if (!Object.hasOwn(all, name) && Object.keys(all).length >= MAX_LABELS)
    fail("internal", `A request may have ${MAX_LABELS} labels.`);
  all[name] = value;
  return all;
}
