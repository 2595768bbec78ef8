// Plans each model's response before limits are applied. The plan does not depend on time or place.
import { fail, type ChatRequest, type Tool, ERRORS, type ErrorKind } from "tollgate/plugin";
import { digestOf, requestedWords, lorem } from "./random-text.ts";
import { lastUserText, pendingToolResults, blockText } from "./request-text.ts";
import { schemaExample } from "./schema-example.ts";

export interface ResponsePlan {
  reasoning?: string;
  /** Whether the reasoning is counted but not sent. */
  hidden?: boolean;
  text?: string;
  call?: { id: string; name: string; tool: "function" | "custom"; args: string };
  isPaced?: boolean;
  failure?: SimulatedFailure;
}

export const CHAT_MODELS = ["echo", "think", "tools", "lorem", "slow", "fail"] as const;
type Model = (typeof CHAT_MODELS)[number];

export function planResponse(model: string, provider: string, r: ChatRequest): ResponsePlan {
  if (!(CHAT_MODELS as readonly string[]).includes(model))
    fail(
      "not_found",
      `Unknown model ${provider}/${model}. Available: ${CHAT_MODELS.map((m) => `${provider}/${m}`).join(", ")}.`,
      { code: "model_not_found", param: "model" },
    );
  if ((r.sampling.n ?? 1) > 1)
    fail("unsupported", "Demo models return only one choice. Set n to 1.", { param: "n" });
  const called = call(model as Model, r);
  if (called) return called;
  const planned = PLANNERS[model as Model](r);
  return planned.text === undefined ? planned : { ...planned, text: formatted(planned.text, r) };
}

const PLANNERS: Readonly<Record<Model, (r: ChatRequest) => ResponsePlan>> = {
  echo: (r) => ({ text: echo(r) }),
  think(r) {
    if (r.reasoning.mode === "off") return { text: echo(r) };
    return {
      reasoning: `The client said ${digits(echo(r))} characters. The best answer is to say them again.`,
      hidden: r.reasoning.show === "none",
      text: echo(r),
    };
  },
  tools: (r) => ({ text: answered(r) ?? "You declared no tool that I could call." }),
  lorem: (r) => ({ text: lorem(requestedWords(lastUserText(r)), seedOf(r)) }),
  slow: (r) => ({ text: lorem(requestedWords(lastUserText(r)), seedOf(r)), isPaced: true }),
  fail(r) {
    const how = parseFailure(lastUserText(r));
    return { text: lorem(Math.max(1, how.afterWords), seedOf(r)), failure: how };
  },
};

const echo = (r: ChatRequest): string => lastUserText(r) || "You said nothing.";
const digits = (textContent: string): number => [...textContent].length;
const seedOf = (r: ChatRequest): number | string => r.sampling.seed ?? lastUserText(r);

/** Returns a tool call if one is allowed (demo/tools) or required (all models). */
function call(model: Model, r: ChatRequest): ResponsePlan | undefined {
  const { toolChoice: choice = "auto" } = r;
  const must = choice === "required" || (typeof choice === "object" && choice.must);
  if (choice === "none" || (!must && (model !== "tools" || pendingToolResults(r).length > 0)))
    return undefined;
  const names = typeof choice === "object" ? choice.names : undefined;
  const tool = r.tools.find((t) => t.type !== "hosted" && (names?.includes(t.name) ?? true));
  if (!tool) return undefined;
  return {
    call: {
      id: `call_${digestOf(r.turns.length, tool.name, lastUserText(r)).slice(0, 24)}`,
      name: tool.name,
      tool: tool.type === "custom" ? "custom" : "function",
      args: argumentsOf(tool),
    },
  };
}

const argumentsOf = ({ type, schema }: Tool): string =>
  type === "custom" ? "demo" : JSON.stringify(schemaExample(schema ?? { type: "object" }));

function answered(r: ChatRequest): string | undefined {
  const all = pendingToolResults(r);
  if (all.length === 0) return undefined;
  return all
    .map(
      (result) =>
        `${result.name ?? "The tool"} ${result.isError ? "failed" : "said"}: ${blockText(result)}`,
    )
    .join("\n");
}

/** Formats the text as JSON if the request asks for JSON. */
function formatted(textContent: string, { output: { format } }: ChatRequest): string {
  if (format?.type === "schema") return JSON.stringify(schemaExample(format.schema));
  return format?.type === "json" ? JSON.stringify({ text: textContent }) : textContent;
}

interface SimulatedFailure {
  kind: ErrorKind;
  /** Number of words to send before the failure. */
  afterWords: number;
  retryAfterMs: number | undefined;
}

const KINDS = Object.keys(ERRORS) as ErrorKind[];

/**
 * Parses a failure such as "rate_limited", "overloaded after 5", or "rate_limited retry 30": the
 * error kind, the words to send first, and the retry delay in seconds.
 */
function parseFailure(text: string): SimulatedFailure {
  const kind = KINDS.find((k) => new RegExp(`\\b${k}\\b`).test(text));
  if (!kind)
    return fail(
      "invalid",
      `Missing failure for demo/fail. Send one of ${KINDS.join(", ")}. "overloaded after 5" sends five words first, and "rate_limited retry 30" sets retry-after to 30 seconds.`,
      { code: "demo_fail_how" },
    );
  const after = /\bafter (\d{1,4})\b/.exec(text)?.[1];
  const retry = /\bretry (\d{1,5})\b/.exec(text)?.[1];
  return {
    kind,
    afterWords: Math.min(Number(after ?? 0), 1_000),
    retryAfterMs: retry === undefined ? undefined : Number(retry) * 1000,
  };
}

export const throwSimulatedFailure = ({ kind, retryAfterMs }: SimulatedFailure): never =>
  fail(kind, `demo/fail failed as requested: ${kind}.`, { code: "demo_failed", retryAfterMs });
