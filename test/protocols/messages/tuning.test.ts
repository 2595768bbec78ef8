// Reasoning, sampling, and tool choice in each model's form.
import { describe, expect, test } from "vitest";
import type { ChatRequest } from "../../../src/model/request.ts";
import type { MessagesDialect } from "../../../src/protocols/messages/index.ts";
import { asked, encode, f, refusal } from "./asked.ts";

describe("thinking", () => {
  const think = (
    reasoning: ChatRequest["reasoning"],
    dialect: MessagesDialect = {},
    more: Partial<ChatRequest> = {},
  ) => encode(asked({ output: { maxTokens: 20_000 }, reasoning, ...more }), dialect);

  test("unrequested settings are not sent", () => {
    expect(think({ mode: "auto" }).body).not.toHaveProperty("thinking");
  });

  test.each<[ChatRequest["reasoning"], MessagesDialect, object | undefined, string | undefined]>([
    [{ mode: "off" }, {}, { type: "disabled" }, undefined],
    [{ mode: "effort", effort: "none" }, {}, { type: "disabled" }, undefined],
    [{ mode: "effort", effort: "high" }, {}, { type: "adaptive" }, "high"],
    [{ mode: "effort", effort: "minimal" }, {}, { type: "adaptive" }, "low"],
    [
      { mode: "effort", effort: "xhigh" },
      { efforts: ["low", "high", "max"] },
      { type: "adaptive" },
      "high",
    ],
    [{ mode: "auto", show: "summary" }, {}, { type: "adaptive", display: "summarized" }, undefined],
    [{ mode: "budget", budget: 5000 }, {}, { type: "enabled", budget_tokens: 5000 }, undefined],
    [{ mode: "budget", budget: 5000 }, { thinking: "always" }, { type: "adaptive" }, "medium"],
    [{ mode: "budget", budget: 90_000 }, { thinking: "always" }, { type: "adaptive" }, "xhigh"],
    [{ mode: "budget", budget: 90_000 }, {}, { type: "enabled", budget_tokens: 19_999 }, undefined],
    [
      { mode: "effort", effort: "low" },
      { thinking: "budget" },
      { type: "enabled", budget_tokens: 2048 },
      undefined,
    ],
    [
      { mode: "effort", effort: "max" },
      { thinking: "budget" },
      { type: "enabled", budget_tokens: 18_976 },
      undefined,
    ],
    [{ mode: "effort", effort: "high" }, { thinking: "none" }, undefined, undefined],
    [{ mode: "off" }, { thinking: "none" }, undefined, undefined],
  ])("%j with %j", (reasoning, dialect, thinking, effort) => {
    const { body } = think(reasoning, dialect);
    expect(body["thinking"]).toEqual(thinking);
    expect(body["output_config"]?.effort).toBe(effort);
  });

  test("a model that always reasons rejects a request without reasoning", () => {
    expect(refusal(() => think({ mode: "off" }, { thinking: "always" })).code).toBe(
      "thinking_required",
    );
  });

  test("a limit that is too small for reasoning is raised", () => {
    const { body, losses } = think(
      { mode: "effort", effort: "low" },
      { thinking: "budget" },
      { output: { maxTokens: 300 } },
    );
    expect(body).toMatchObject({ max_tokens: 2048, thinking: { budget_tokens: 1024 } });
    expect(losses.map((l) => l.code)).toContain("max_tokens_raised");
  });

  test("with a budget, sampling parameters are dropped", () => {
    const { body, losses } = think(
      { mode: "budget", budget: 2000 },
      {},
      { sampling: { temperature: 0.3, topP: 0.5, topK: 9 } },
    );
    for (const field of ["temperature", "top_p", "top_k"]) {
      expect(body).not.toHaveProperty(field);
      expect(losses).toContainEqual({ field, how: "dropped", code: "thinking" });
    }
  });

  test("with a forced tool, thinking is dropped", () => {
    const { body, losses } = think(
      { mode: "budget", budget: 2000 },
      {},
      { tools: [f], toolChoice: "required" },
    );
    expect(body).toMatchObject({ thinking: { type: "disabled" }, tool_choice: { type: "any" } });
    expect(losses.map((l) => l.code)).toContain("thinking_disabled_forced_tool");
  });

  test("without signatures in a tools loop, the request continues without thinking", () => {
    const turns: ChatRequest["turns"] = [
      {
        role: "assistant",
        blocks: [{ type: "call", id: "a", name: "f", tool: "function", args: "{}" }],
      },
      { role: "tool", blocks: [{ type: "result", callId: "a", blocks: [], isError: false }] },
    ];
    const { body, losses } = think({ mode: "budget", budget: 2000 }, {}, { turns });
    expect(body["thinking"]).toEqual({ type: "disabled" });
    expect(losses.map((l) => l.code)).toContain("thinking_disabled_missing_signature");
  });
});

describe("sampling", () => {
  const sampling = { temperature: 0.5, topP: 0.5, topK: 3 };
  const kept = (dialect: MessagesDialect, info = {}) =>
    Object.keys(encode(asked({ sampling }), dialect, { info }).body).filter((k) =>
      /temperature|top_/.test(k),
    );

  test("up to what the model accepts", () => {
    expect(kept({})).toEqual(["temperature", "top_p", "top_k"]);
    expect(kept({ sampling: "either" })).toEqual(["temperature", "top_k"]);
    expect(kept({ sampling: "none" })).toEqual([]);
    expect(kept({}, { rejectedFields: ["top_k"] })).toEqual(["temperature", "top_p"]);
  });

  test("by model, if models differ", () => {
    const dialect: MessagesDialect = {
      sampling: "none",
      models: [
        { of: ["x*"], sampling: "all" },
        { of: ["m"], sampling: "either" },
      ],
    };
    expect(kept(dialect)).toEqual(["temperature", "top_k"]);
  });

  test("the output limit is the model's own if known", () => {
    const info = { limits: { output: 500 } };
    expect(encode(asked({ output: {} }), {}, { info }).body["max_tokens"]).toBe(500);
    const clamped = encode(asked({ output: { maxTokens: 900 } }), {}, { info });
    expect(clamped.body["max_tokens"]).toBe(500);
    expect(clamped.losses.map((l) => l.code)).toEqual(["max_tokens_clamped"]);
  });
});

describe("tools", () => {
  const sent = (r: Partial<ChatRequest>) => encode(asked(r)).body;

  test.each<[ChatRequest["toolChoice"], boolean | undefined, object | undefined]>([
    [undefined, undefined, undefined],
    [undefined, true, undefined],
    [undefined, false, { type: "auto", disable_parallel_tool_use: true }],
    ["auto", undefined, { type: "auto" }],
    ["required", false, { type: "any", disable_parallel_tool_use: true }],
    ["none", false, { type: "none" }],
    [{ names: ["f"], must: true }, undefined, { type: "tool", name: "f" }],
    [{ names: ["f"], must: false }, undefined, { type: "auto" }],
  ])("%j, parallel %j", (toolChoice, parallel, choice) => {
    expect(sent({ tools: [f], toolChoice, parallelToolCalls: parallel })["tool_choice"]).toEqual(
      choice,
    );
  });

  test("a tool without parameters has an empty object schema", () => {
    const tools = sent({
      tools: [
        { type: "function", name: "f" },
        { ...f, name: "g", schema: { properties: {} } },
      ],
    })["tools"];
    for (const tool of tools) expect(tool.input_schema).toEqual({ type: "object", properties: {} });
  });

  test("a repeated tool is sent once", () => {
    expect(sent({ tools: [f, f] })["tools"]).toHaveLength(1);
  });

  test("a name that is invalid in this protocol is changed in declaration, choice, and history alike", () => {
    const name = "files.read/all";
    const body = sent({
      tools: [{ ...f, name }],
      toolChoice: { names: [name], must: true },
      turns: [
        {
          role: "assistant",
          blocks: [{ type: "call", id: "a", name, tool: "function", args: "{}" }],
        },
      ],
    });
    const fitted = body["tools"][0].name;
    expect(fitted).toMatch(/^[a-zA-Z0-9_-]{1,128}$/);
    expect(body["tool_choice"].name).toBe(fitted);
    expect(body["messages"][0].content[0].name).toBe(fitted);
  });

  test("a grammar is put in the description", () => {
    const raw = { type: "grammar", grammar: { syntax: "lark", definition: "start: /x/" } };
    const body = sent({ tools: [{ type: "custom", name: "p", description: "Patch.", raw }] });
    expect(body["tools"][0].description).toBe(
      "Patch.\n\nThe input must follow this grammar:\nstart: /x/",
    );
  });
});
