import type { ModelEvent } from "../model/event.ts";
import { UNITS, type Usage } from "../model/usage.ts";

/** Events that each type of block may contain. */
const ALLOWED_CONTENT: { readonly [block: string]: readonly ModelEvent["type"][] } = {
  text: ["delta", "cite", "proof"],
  refusal: ["delta", "proof"],
  reasoning: ["delta", "proof"],
  call: ["delta", "proof"],
  image: ["media", "proof"],
  audio: ["media", "delta", "proof"],
  opaque: ["delta", "media", "cite", "proof"],
};

/**
 * Checks a stream of events against the grammar `start (open (delta | media | proof | cite)* close
 * | item | usage)* finish`. Several blocks can be open at the same time, each contains only events
 * of its type, and usage never decreases.
 *
 * Throws at the first invalid event. `end()` throws if the finish is missing. With `guessed`, the
 * first usage report may be an estimate of the input, because the gateway sends one before the
 * provider has counted. The next report may then be lower.
 */
export function createEventGrammar(of: { readonly guessed?: boolean } = {}): {
  event(e: ModelEvent): void;
  end(): void;
} {
  const open = new Map<number, string>();
  const seen = new Set<number>();
  const items = new Set<number>();
  const usage = new Map<string, Usage>();
  /** Models for which more than the estimate was reported. */
  const counted = new Set<string>();
  let state: "before" | "in" | "over" = "before";
  let n = 0;
  const wrong = (why: string, e: ModelEvent): never => {
    throw new Error(`Event ${n} violates the event grammar: ${why}. Event: ${formatEvent(e)}`);
  };
  const fits = (e: ModelEvent & { index: number }) => {
    const block = open.get(e.index);
    if (block === undefined)
      wrong(`block ${e.index} is ${seen.has(e.index) ? "closed" : "not open"}`, e);
    else if (!ALLOWED_CONTENT[block]!.includes(e.type))
      wrong(`a ${block} block must not contain ${e.type}`, e);
  };
  return {
    event(e) {
      n++;
      if (state === "over") wrong("no event may follow finish", e);
      if (e.type === "start") {
        if (state !== "before") wrong("start was already emitted", e);
        state = "in";
        return;
      }
      if (state === "before") wrong("start must be the first event", e);
      switch (e.type) {
        case "item":
          if (!Number.isSafeInteger(e.index) || e.index < 0)
            wrong("index must be a non-negative integer", e);
          if (items.has(e.index)) wrong(`item ${e.index} was already emitted`, e);
          items.add(e.index);
          return;
        case "open":
          if (!Number.isSafeInteger(e.index) || e.index < 0)
            wrong("index must be a non-negative integer", e);
          if (seen.has(e.index)) wrong(`block ${e.index} was already opened`, e);
          if (!(e.block.type in ALLOWED_CONTENT)) wrong("block is not open", e);
          if (e.block.type === "call" && (e.block.id === "" || e.block.name === ""))
            wrong("a call must have an id and a name", e);
          seen.add(e.index);
          open.set(e.index, e.block.type);
          return;
        case "delta":
          if (typeof e.text !== "string") wrong("a delta must have text", e);
          return fits(e);
        case "media":
        case "proof":
        case "cite":
          return fits(e);
        case "close":
          if (!open.delete(e.index))
            wrong(`block ${e.index} is ${seen.has(e.index) ? "closed already" : "not open"}`, e);
          return;
        case "usage": {
          const model = e.model ?? "";
          const before = usage.get(model) ?? {};
          const guess = of.guessed === true && !counted.has(model);
          const fell = usageProblem(guess ? { output: before.output } : before, e.usage);
          if (usage.has(model)) counted.add(model);
          if (fell) wrong(fell, e);
          usage.set(model, { ...before, ...e.usage });
          return;
        }
        case "finish":
          if (open.size > 0) wrong(`block ${[...open.keys()].join(", ")} is still open`, e);
          state = "over";
          return;
        default:
          wrong("unknown event type", e);
      }
    },
    end() {
      if (state !== "over") throw new Error(`The events end after ${n} without a finish.`);
    },
  };
}

/** Returns the problem with an invalid usage count, or with a count that decreased. */
function usageProblem(before: Usage, now: Usage): string | undefined {
  for (const unit of UNITS) {
    const count = now[unit];
    if (count === undefined) continue;
    if (!(typeof count === "number" && Number.isFinite(count) && count >= 0))
      return `${unit} is ${String(count)}`;
    if (count < (before[unit] ?? 0)) return `${unit} decreases from ${before[unit]} to ${count}`;
  }
  return undefined;
}

const formatEvent = (e: ModelEvent): string => {
  const text = JSON.stringify(e, (_key, value: unknown) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};
