// Describes how models of this protocol and the platforms that serve them differ. It is plain data.
// `models` describes differences between models. A model that is newer than the list is treated
// like the newest model of the list.
import { matchesGlob } from "../../lib/glob.ts";

export interface GeminiTraits {
  /**
   * How reasoning is controlled. `level`: with `thinkingLevel`. `budget`: with `thinkingBudget`.
   * `none`: not at all.
   */
  thinking?: "level" | "budget" | "none";
  /**
   * Supported levels, from lowest to highest. `minimal`, if supported, is nearly the same as no
   * reasoning.
   */
  levels?: readonly string[];
  /** Minimum and maximum thinking budget in tokens. */
  budget?: readonly [least: number, most: number];
  /**
   * Whether reasoning can be disabled. false: the model always reasons, and a budget of 0 is
   * rejected with an error.
   */
  canDisableThinking?: boolean;
  /** Whether calls that come back without a thought signature are rejected with an error. */
  signatures?: boolean;
  /**
   * Whether `parametersJsonSchema` and `responseJsonSchema` are supported, which accept standard
   * JSON Schema.
   */
  jsonSchema?: boolean;
  /** Whether one request can combine tools with JSON output, or functions with hosted tools. */
  combinesTools?: boolean;
  /** Whether files are fetched from any https URL. */
  fetchesUrls?: boolean;
  /** Whether function results can contain images. */
  toolMedia?: boolean;
  /**
   * Whether system instructions are supported. false: they are put at the start of the first user
   * turn.
   */
  systemInstruction?: boolean;
  /** Maximum length of a function name. */
  nameLength?: number;
  /** Whether calls and their results have IDs. */
  callIds?: boolean;
}

export interface GeminiDialect extends GeminiTraits {
  /**
   * Differences between models. Later matching entries replace earlier entries. A pattern may
   * contain one `*`, which matches any text.
   */
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

/** Traits of models before 2.5, without JSON Schema and without control over reasoning. */
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
  // "models/x" and "publishers/google/models/x" both name the model x.
  const name = model.slice(model.lastIndexOf("/") + 1);
  let found: FullGeminiTraits = { ...NEWEST_TRAITS };
  for (const { of, ...traits } of FAMILIES)
    if (of.some((pattern) => matchesGlob(pattern, name))) found = { ...found, ...traits };
  found = { ...found, ...mine };
  for (const { of, ...traits } of models)
    if (of.some((pattern) => matchesGlob(pattern, name))) found = { ...found, ...traits };
  return found;
}

/**
 * Returns the family of a model, for example "gemini-3". Signatures are valid only within one
 * family. Undefined: unknown.
 */
export const familyOf = (model: string | undefined): string | undefined =>
  /gemini-\d+/.exec(model ?? "")?.[0];
