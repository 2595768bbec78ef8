// The responses endpoint of a whole gateway: both modes, state separated by key, and items by
// reference.
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  think,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";

const ALICE = "alice-key";
const BOB = "bob-key";

const yaml = (up: string) => `
frontends: [responses, chat-completions]
middleware:
  - use: auth
    with: { keys: [{ id: alice, digest: "${digestKey(ALICE)}" }, { id: bob, digest: "${digestKey(BOB)}" }] }
  - zdr
  - limits
  - usage
providers:
  openai: { use: openai, with: { api_key: k, base_url: "${up}/v1" } }
  relay: { use: openai, state_mode: relay, with: { api_key: k, base_url: "${up}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${up}" } }
  plain: { use: openai-compatible, with: { api_key: k, base_url: "${up}/v1" } }
models: { fast: [relay/gpt-6] }
`;

let up: TestUpstream;
let gateway: Awaited<ReturnType<typeof startInProcess>>;
const client = (apiKey = ALICE) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });

beforeAll(async () => {
  up = await startUpstream();
  gateway = await startInProcess({ yaml: yaml(up.url) });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

/** Requests to models. Lists are requested from time to time. */
const asked = () => up.requests.filter(({ method }) => method === "POST");
const raised = (run: Promise<unknown>) =>
  run.then(
    () => {
      throw new Error("Nothing was raised.");
    },
    (error: any) => ({
      status: error.status,
      code: error.code,
      param: error.param,
      message: error.message,
    }),
  );
const speak = (speech: Parameters<typeof scriptedModel>[0]) => {
  up.reset();
  up.setRoutes(scriptedModel(speech));
};

describe.each(["openai/gpt-6", "claude/claude-sonnet-5", "plain/m"])("%s", (model) => {
  it("responds non-streaming, streaming, and with tools", async () => {
    speak((asked) =>
      JSON.stringify(asked.json()).includes("_output") ||
      JSON.stringify(asked.json()).includes("tool_result") ||
      JSON.stringify(asked.json()).includes('"role":"tool"')
        ? say("It rains.")
        : think("Look.", "c2ln").call("get_weather", { city: "Oslo" }),
    );
    const tools: OpenAI.Responses.Tool[] = [
      { type: "function", name: "get_weather", parameters: { type: "object" }, strict: false },
    ];
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
    const first = await client()
      .responses.stream({ model, input, tools, store: false })
      .finalResponse();
    expect(first.model).toBe(model);
    const made = first.output.find((item) => item.type === "function_call")!;
    input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]), {
      type: "function_call_output",
      call_id: made.type === "function_call" ? made.call_id : "",
      output: "rain",
    });
    const second = await client().responses.create({ model, input, tools, store: false });
    expect(second.output_text).toBe("It rains.");
    expect(second.usage?.total_tokens).toBe(
      second.usage!.input_tokens + second.usage!.output_tokens,
    );
    // The proof was returned to its provider.
    const last = asked().at(-1)!.body.toString();
    if (model !== "plain/m") expect(last).toContain("c2ln");
  });

  it("makes an SDK send the whole conversation again", async () => {
    speak(say("Hi"));
    expect(
      await raised(
        client().responses.create({ model, input: "x", previous_response_id: "resp_gone" }),
      ),
    ).toMatchObject({
      status: 400,
      code: "previous_response_not_found",
      param: "previous_response_id",
    });
    expect(asked()).toHaveLength(0);
  });
});

describe("state", () => {
  it("is not stored unless requested", async () => {
    speak(say("Hi"));
    await client().responses.create({ model: "openai/gpt-6", input: "x" });
    await client().responses.create({ model: "openai/gpt-6", input: "x", store: true });
    await client().responses.create({ model: "relay/gpt-6", input: "x" });
    expect(asked().map((r) => r.json().store)).toEqual([false, true, undefined]);
  });

  it("of one key is neither accessible nor visible to another", async () => {
    let made = 0;
    up.reset();
    up.setRoutes({
      "POST /v1/responses": (asked) => {
        const answer = say("Hi").toResponse(asked);
        return {
          ...answer,
          body: String((answer.body as any).bytes ?? answer.body).replace(
            /resp_\d+/,
            `resp_made${++made}`,
          ),
        };
      },
      "GET /v1/responses/*": (asked) =>
        jsonResponse({ id: asked.path.split("/").at(-1)!, object: "response", output: [] }),
      "DELETE /v1/responses/*": jsonResponse({ deleted: true }),
    });
    const { id } = await client().responses.create({ model: "relay/gpt-6", input: "x" });
    expect(id).toBe("resp_made1");
    // The key that created it may continue it, also through an alias of the same target.
    await client().responses.create({ model: "relay/gpt-6", input: "y", previous_response_id: id });
    expect(asked().at(-1)!.json()).toMatchObject({ previous_response_id: id, model: "gpt-6" });
    expect((await client().responses.retrieve(id)).id).toBe(id);
    await client().responses.delete(id);
    const before = asked().length;

    const same = async (run: (sdk: OpenAI, id: string) => Promise<unknown>) => {
      const told = async (key: string, of: string) => {
        const error = await raised(run(client(key), of));
        return JSON.stringify(error).replaceAll(of, "<id>");
      };
      expect(await told(BOB, id)).toBe(await told(BOB, "resp_never"));
      expect(await told(BOB, id)).toBe(await told(ALICE, "resp_never"));
    };
    await same((sdk, of) => sdk.responses.retrieve(of));
    await same((sdk, of) => sdk.responses.delete(of));
    await same((sdk, of) => sdk.responses.inputItems.list(of));
    await same((sdk, of) =>
      sdk.responses.create({ model: "relay/gpt-6", input: "x", previous_response_id: of }),
    );
    await same((sdk, of) =>
      sdk.responses.create({ model: "fast", input: "x", previous_response_id: of }),
    );
    await same((sdk, of) =>
      sdk.responses.create({ model: "relay/gpt-6", input: [{ type: "item_reference", id: of }] }),
    );
    expect(asked()).toHaveLength(before);
  });

  it("is rejected if the operator does not relay it, even for its creator", async () => {
    speak(say("Hi"));
    const { id } = await client().responses.create({
      model: "openai/gpt-6",
      input: "x",
      store: true,
    });
    const before = asked().length;
    expect((await raised(client().responses.retrieve(id))).status).toBe(404);
    expect(
      (
        await raised(
          client().responses.create({
            model: "openai/gpt-6",
            input: "x",
            previous_response_id: id,
          }),
        )
      ).code,
    ).toBe("previous_response_not_found");
    expect(
      (
        await raised(
          client().responses.create({
            model: "openai/gpt-6",
            input: [{ role: "user", content: [{ type: "input_file", file_id: "file_1" }] }],
          }),
        )
      ).code,
    ).toBe("unsupported_parameter");
    expect(asked()).toHaveLength(before);
  });

  it.each([
    ["claude/claude-sonnet-5", true],
    ["claude/claude-sonnet-5", false],
    ["plain/m", true],
  ])("keeps items for requests that refer to them: %s, stream %s", async (model, stream) => {
    speak(think("Hm.", "c2ln").call("f", {}));
    const ask = { model, input: "x" };
    const first = stream
      ? await client().responses.stream(ask).finalResponse()
      : await client().responses.create(ask);
    const [made] = first.output.flatMap((item) =>
      item.type === "function_call" ? [item.call_id] : [],
    );
    const refer = (key: string) =>
      client(key).responses.create({
        model,
        input: [
          { role: "user", content: "x" },
          ...first.output.map((item) => ({ type: "item_reference" as const, id: item.id! })),
          { type: "function_call_output", call_id: made!, output: "ok" },
        ],
      });
    await refer(ALICE);
    const last = asked().at(-1)!.body.toString();
    expect(last).toContain(made);
    expect(last).not.toContain("item_reference");
    if (model.startsWith("claude")) expect(last).toContain('"signature":"c2ln"');
    expect((await raised(refer(BOB))).message).toContain("store: false");
    // Under privacy nothing is stored.
    const strict = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${ALICE}`,
        "content-type": "application/json",
        "service-zdr": "required",
      },
      body: JSON.stringify({ model, input: [{ type: "item_reference", id: first.output[0]!.id }] }),
    });
    expect(strict.status).toBe(400);
    expect(((await strict.json()) as any).error.code).toBe("item_not_found");
  });
});

describe("the endpoint", () => {
  it("counts tokens", async () => {
    speak(say("Hi"));
    expect(
      await client().responses.inputTokens.count({ model: "openai/gpt-6", input: "x" }),
    ).toEqual({
      object: "response.input_tokens",
      input_tokens: 42,
    });
    const { input_tokens } = await client().responses.inputTokens.count({
      model: "plain/m",
      input: "How many are these?",
    });
    expect(input_tokens).toBeGreaterThan(0);
  });

  it("is found with any form of the base URL", async () => {
    speak(say("Hi"));
    for (const base of ["", "/v1", "/v1/v1"])
      for (const slash of ["", "/"]) {
        const res = await fetch(`${gateway.url}${base}/responses${slash}`, {
          method: "POST",
          headers: { authorization: `Bearer ${ALICE}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "openai/gpt-6", input: "x" }),
        });
        expect(`${base}${slash} ${res.status}`).toBe(`${base}${slash} 200`);
      }
  });

  it("reports errors in the protocol's own format", async () => {
    expect(
      await raised(client().responses.create({ model: "openai/gpt-6" } as never)),
    ).toMatchObject({ status: 400 });
    expect(
      await raised(
        client().responses.create({
          model: "openai/gpt-6",
          input: "x",
          tools: [{ name: "wat" } as never],
        }),
      ),
    ).toMatchObject({ status: 400, message: expect.stringContaining("type") });
    expect(
      (await raised(client("wrong").responses.create({ model: "openai/gpt-6", input: "x" })))
        .status,
    ).toBe(401);
  });
});
