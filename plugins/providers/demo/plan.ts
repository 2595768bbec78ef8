// What each model would say to a request, before limits are applied. Nothing here depends on when or where it runs.
import { fail, type ChatRequest, type Tool } from "tollgate/plugin";
import { digest } from "./chance.ts";
import { failing, type Failing } from "./failing.ts";
import { lastSaid, results, text } from "./heard.ts";
import { asked, lorem } from "./lorem.ts";
import { satisfy } from "./satisfy.ts";

export interface Plan {
  reasoning?: string;
  /** Reasoning that is done and counted, and not shown. */
  hidden?: boolean;
  text?: string;
  call?: { id: string; name: string; tool: "function" | "custom"; args: string };
  paced?: boolean;
  failing?: Failing;
}

export const CHAT = ["echo", "think", "tools", "lorem", "slow", "fail"] as const;
type Model = (typeof CHAT)[number];

export function plan(model: string, provider: string, r: ChatRequest): Plan {
  if (!(CHAT as readonly string[]).includes(model))
    fail(
      "not_found",
      `There is no ${provider}/${model}. There are: ${CHAT.map((m) => `${provider}/${m}`).join(", ")}.`,
      { code: "model_not_found", param: "model" },
    );
  if ((r.sampling.n ?? 1) > 1) fail("unsupported", "The demo gives one answer.", { param: "n" });
  const called = call(model as Model, r);
  if (called) return called;
  const said = SAY[model as Model](r);
  return said.text === undefined ? said : { ...said, text: formatted(said.text, r) };
}

const SAY: Readonly<Record<Model, (r: ChatRequest) => Plan>> = {
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
  lorem: (r) => ({ text: lorem(asked(lastSaid(r)), seedOf(r)) }),
  slow: (r) => ({ text: lorem(asked(lastSaid(r)), seedOf(r)), paced: true }),
  fail(r) {
    const how = failing(lastSaid(r));
    return { text: lorem(Math.max(1, how.after), seedOf(r)), failing: how };
  },
};

const echo = (r: ChatRequest): string => lastSaid(r) || "You said nothing.";
const digits = (said: string): number => [...said].length;
const seedOf = (r: ChatRequest): number | string => r.sampling.seed ?? lastSaid(r);

/** demo/tools calls where it may; every model where it must. */
function call(model: Model, r: ChatRequest): Plan | undefined {
  const { toolChoice: choice = "auto" } = r;
  const must = choice === "required" || (typeof choice === "object" && choice.must);
  if (choice === "none" || (!must && (model !== "tools" || results(r).length > 0)))
    return undefined;
  const names = typeof choice === "object" ? choice.names : undefined;
  const tool = r.tools.find((t) => t.type !== "hosted" && (names?.includes(t.name) ?? true));
  if (!tool) return undefined;
  return {
    call: {
      id: `call_${digest(r.turns.length, tool.name, lastSaid(r)).slice(0, 24)}`,
      name: tool.name,
      tool: tool.type === "custom" ? "custom" : "function",
      args: argumentsOf(tool),
    },
  };
}

const argumentsOf = ({ type, schema }: Tool): string =>
  type === "custom" ? "demo" : JSON.stringify(satisfy(schema ?? { type: "object" }));

function answered(r: ChatRequest): string | undefined {
  const all = results(r);
  if (all.length === 0) return undefined;
  return all
    .map(
      (result) =>
        `${result.name ?? "The tool"} ${result.isError ? "failed" : "said"}: ${text(result)}`,
    )
    .join("\n");
}

/** A request for JSON gets JSON. */
function formatted(said: string, { output: { format } }: ChatRequest): string {
  if (format?.type === "schema") return JSON.stringify(satisfy(format.schema));
  return format?.type === "json" ? JSON.stringify({ text: said }) : said;
}
