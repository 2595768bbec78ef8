// What differs between models that are reached over this wire, and between the platforms that serve them. Data; where
// models differ, `models` says how. What is newer than the list is taken to be like the newest.
import { matchesGlob } from "../../lib/glob.ts";

export interface GeminiTraits {
  /** How it is told to think: level: `thinkingLevel` · budget: `thinkingBudget` · none: not at all. */
  thinking?: "level" | "budget" | "none";
  /** Levels it knows, from low to high. Where `minimal` is among them, that is as good as none. */
  levels?: readonly string[];
  /** Tokens to think with, at least and at most. */
  budget?: readonly [least: number, most: number];
  /** false: with a budget of zero it is an error; it always thinks. */
  canDisableThinking?: boolean;
  /** Calls that come back without a thought signature are answered with an error. */
  signatures?: boolean;
  /** Takes `parametersJsonSchema` and `responseJsonSchema`: JSON Schema as people write it. */
  jsonSchema?: boolean;
  /** Tools and a JSON answer, or functions and hosted tools, go together in one request. */
  combinesTools?: boolean;
  /** Fetches files from any https address. */
  fetchesUrls?: boolean;
  /** Functions may answer with pictures. */
  toolMedia?: boolean;
  /** false: no system instruction; it goes to the head of the first user turn. */
  systemInstruction?: boolean;
  /** The longest name a function may have. */
  nameLength?: number;
  /** Calls and their results carry ids. */
  callIds?: boolean;
}

export interface GeminiDialect extends GeminiTraits {
  /** Where models differ: the last that fits adds to what stands above it. One `*` stands for anything. */
  models?: readonly (GeminiTraits & { of: readonly string[] })[];
}

export type FullGeminiTraits = Required<GeminiTraits>;

const NEWEST_TRAITS: FullGeminiTraits = {
  thinking: "level",
  levels: ["low", "medium", "high"],
  budget: [128, 32_768],
  canDisableThinking: true,
  signatures: true,
  jsonSchema: true,
  combinesTools: true,
  fetchesUrls: true,
  toolMedia: true,
  systemInstruction: true,
  nameLength: 128,
  callIds: true,
};

const OLDER_TRAITS = {
  signatures: false,
  combinesTools: false,
  toolMedia: false,
  nameLength: 64,
} satisfies GeminiTraits;

/** Before 2.5: no JSON Schema, no thinking that could be told anything. */
const OLDEST_TRAITS = {
  ...OLDER_TRAITS,
  thinking: "none",
  jsonSchema: false,
  fetchesUrls: false,
} satisfies GeminiTraits;

/** Google's own models, by family. */
const FAMILIES: NonNullable<GeminiDialect["models"]> = [
  { of: ["gemini-1*", "gemini-2.0*", "learnlm*"], ...OLDEST_TRAITS },
  { of: ["gemma*"], ...OLDEST_TRAITS, systemInstruction: false },
  { of: ["gemini-2.5*"], ...OLDER_TRAITS, thinking: "budget", budget: [1, 24_576] },
  { of: ["gemini-2.5-pro*"], budget: [128, 32_768], canDisableThinking: false },
  { of: ["gemini-2.5-flash-lite*"], budget: [512, 24_576] },
  { of: ["gemini-2.5-flash-image*"], thinking: "none" },
  { of: ["gemini-3-pro-preview*"], levels: ["low", "high"] },
  {
    of: ["gemini-3-flash*", "gemini-3.1-flash*", "gemini-3.5-flash*", "gemini-3.6-flash*"],
    levels: ["minimal", "low", "medium", "high"],
  },
];

export function traitsOf({ models = [], ...mine }: GeminiDialect, model: string): FullGeminiTraits {
  // "models/x" and "publishers/google/models/x" are x.
  const name = model.slice(model.lastIndexOf("/") + 1);
  let found: FullGeminiTraits = { ...NEWEST_TRAITS };
  for (const { of, ...traits } of FAMILIES)
    if (of.some((pattern) => matchesGlob(pattern, name))) found = { ...found, ...traits };
  found = { ...found, ...mine };
  for (const { of, ...traits } of models)
    if (of.some((pattern) => matchesGlob(pattern, name))) found = { ...found, ...traits };
  return found;
}

/** Signatures are bound to the family of models that made them: "gemini-3". Undefined: unknown. */
export const familyOf = (model: string | undefined): string | undefined =>
  /gemini-\d+/.exec(model ?? "")?.[0];
