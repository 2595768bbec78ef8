// Asks the questions of `tollgate init` at a terminal. Each question has a default for Enter.
import { parseDuration } from "../../lib/time/units.ts";
import { didYouMean } from "../../lib/text.ts";
import type { StarterOptions } from "./starter-config.ts";

export interface InterviewOptions {
  /** Providers that ship with Tollgate. */
  readonly builtInProviders: readonly string[];
  /** Providers whose variables are set. */
  readonly detectedProviders: readonly string[];
  ask(question: string): Promise<string>;
  print(text: string): void;
}

export async function askStarterOptions(of: InterviewOptions): Promise<StarterOptions> {
  const { detectedProviders, print } = of;
  print(
    detectedProviders.length === 0
      ? "No provider API key is set in the environment. The config names the variable " +
          "that each provider needs."
      : `Provider API keys are set for: ${detectedProviders.join(", ")}.`,
  );
  const usual = detectedProviders.length > 0 ? detectedProviders : ["demo"];
  const names = await askUntilValid(of, `Which providers? [${usual.join(", ")}] `, (text) => {
    const words = text.split(/[\s,]+/).filter(Boolean);
    const strange = words.find((word) => !of.builtInProviders.includes(word));
    if (strange === undefined) return { value: words.length > 0 ? words : usual };
    return `Unknown provider "${strange}".${didYouMean(strange, of.builtInProviders)} To list all providers, run tollgate list provider.`;
  });
  const server = await askUntilValid(
    of,
    "Base URL of your own server with the chat completions API? [none] ",
    (text) =>
      text === "" || /^https?:$/.test(URL.parse(text)?.protocol ?? "")
        ? { value: text || undefined }
        : "Enter a URL such as http://127.0.0.1:11434/v1.",
  );
  const budget = await askUntilValid(
    of,
    "Monthly budget of a new key, in US dollars? [no limit] ",
    (text) =>
      text === "" || /^\d{1,9}(\.\d{1,9})?$/.test(text)
        ? { value: text || undefined }
        : "Enter an amount such as 50 or 12.50.",
  );
  const retention = await askUntilValid(of, "How long are ledger rows kept? [400d] ", (text) =>
    text === "" || parseDuration(text) !== undefined || text === "forever"
      ? { value: text === "forever" ? undefined : text || "400d" }
      : "Enter a duration such as 90d, or forever.",
  );
  return { names, server, budget, retention };
}

/**
 * Maximum number of times that a question is repeated after an invalid answer. Bounded because the
 * input may not be a terminal.
 */
const MAX_TRIES = 10;

async function askUntilValid<T>(
  { ask, print }: InterviewOptions,
  question: string,
  read: (text: string) => { readonly value: T } | string,
): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const answer = read((await ask(question)).trim());
    if (typeof answer !== "string") return answer.value;
    print(answer);
  }
  throw new Error("Too many invalid answers.");
}
