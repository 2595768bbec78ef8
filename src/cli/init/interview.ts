// What `tollgate init` asks at a terminal. Each question has an answer that Enter gives.
import { parseDuration } from "../../lib/duration.ts";
import { nearest } from "../../lib/text.ts";
import type { Starting } from "./starter.ts";

export interface InterviewOptions {
  /** Providers that come with Tollgate. */
  readonly known: readonly string[];
  /** Those whose variables are set. */
  readonly found: readonly string[];
  ask(question: string): Promise<string>;
  say(text: string): void;
}

export async function interview(of: InterviewOptions): Promise<Starting> {
  const { found, say } = of;
  say(
    found.length === 0
      ? "No variable with a provider's key is set; the file will say which one each needs."
      : `Variables with keys are set for: ${found.join(", ")}.`,
  );
  const usual = found.length > 0 ? found : ["demo"];
  const names = await until(of, `Which providers? [${usual.join(", ")}] `, (text) => {
    const words = text.split(/[\s,]+/).filter(Boolean);
    const strange = words.find((word) => !of.known.includes(word));
    if (strange === undefined) return { value: words.length > 0 ? words : usual };
    const near = nearest(strange, of.known);
    return `There is no "${strange}".${near === undefined ? "" : ` Did you mean "${near}"?`} tollgate list provider has all.`;
  });
  const server = await until(
    of,
    "The address of a server of your own that speaks chat completions? [none] ",
    (text) =>
      text === "" || /^https?:$/.test(URL.parse(text)?.protocol ?? "")
        ? { value: text || undefined }
        : "It is an address such as http://127.0.0.1:11434/v1.",
  );
  const budget = await until(
    of,
    "How many dollars a month may a new key cost? [no limit] ",
    (text) =>
      text === "" || /^\d{1,9}(\.\d{1,9})?$/.test(text)
        ? { value: text || undefined }
        : "It is an amount such as 50 or 12.50.",
  );
  const keep = await until(of, "How long are rows of the ledger kept? [400d] ", (text) =>
    text === "" || parseDuration(text) !== undefined || text === "forever"
      ? { value: text === "forever" ? undefined : text || "400d" }
      : "It is a time such as 90d, or forever.",
  );
  return { names, server, budget, keep };
}

/** A person is asked again until the answer is one; not for ever, for the terminal may be none. */
const MOST = 10;

async function until<T>(
  { ask, say }: InterviewOptions,
  question: string,
  read: (text: string) => { readonly value: T } | string,
): Promise<T> {
  for (let tries = 0; tries < MOST; tries++) {
    const answer = read((await ask(question)).trim());
    if (typeof answer !== "string") return answer.value;
    say(answer);
  }
  throw new Error("No answer that could be used.");
}
