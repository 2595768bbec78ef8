// Sent bodies are the analyzed ones. Every documented field of every protocol is put into every
// other protocol's body, nested too, for every target. Everything that an upstream must not receive
// is marked, and no mark may reach an upstream.
//
// To add a tripwire, add rows with their own `what` to `foreign.ts`, and the forbidden content to
// `TRIPWIRES`.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DOCUMENTED, FOREIGN, mark, type What } from "./foreign-fields.ts";
import { everyNth } from "../../kit/law-effort.ts";
import { columnOf, isImage, ROADS, roads, type Roads, type Ways } from "../protocol-pairs.ts";

let all: Roads;
beforeAll(async () => {
  all = await roads();
});
afterAll(() => all[Symbol.asyncDispose]());

it.each(ROADS)("a plain request of %s reaches %s, whatever is requested", async (from, into) => {
  await using gate = await all.open(from);
  for (const level of ["off", "required", "strict"])
    expect((await gate.send(into, {}, { "service-zdr": level })).text).toContain('{"');
});

/** When each kind must not be sent. */
interface Setting {
  readonly name: string;
  readonly trips: readonly What[];
  readonly of?: Ways;
  readonly zdr?: "required" | "strict";
}
const TRIPWIRES: readonly Setting[] = [
  { name: "an ordinary key", trips: ["state", "account"] },
  {
    name: "a key of one model",
    trips: ["models", "state", "account"],
    of: { identity: { models: ["*/m"] } },
  },
  {
    name: "Service-ZDR: required",
    trips: ["state", "keeps", "hosted", "models", "account", "unknown"],
    zdr: "required",
  },
  {
    name: "Service-ZDR: strict",
    trips: ["state", "keeps", "hosted", "models", "account", "unknown", "cache"],
    zdr: "strict",
  },
];
/** Cache marks are their own marker. */
const seen = (what: What, text: string): boolean =>
  what === "cache" ? /cache_?control|prompt_cache/i.test(text) : text.includes(mark(what));

describe.each(TRIPWIRES)("for $name", ({ trips, of, zdr: level }) => {
  const headers: Record<string, string> = level ? { "service-zdr": level } : {};
  it.each(ROADS)("no request with a restricted field is sent from %s to %s", async (from, into) => {
    await using gate = await all.open(from, of);
    const wrong: string[] = [];
    for (const foreign of everyNth(12, FOREIGN, columnOf(from, into))) {
      if (!trips.includes(foreign.what)) continue;
      const { text, status, error } = await gate.send(into, foreign.fields, headers);
      if (seen(foreign.what, text)) wrong.push(`${foreign.name}: ${text}`);
      if (status >= 500 && error?.code === undefined && text === "")
        wrong.push(`${foreign.name}: ${status} ${JSON.stringify(error)}`);
    }
    expect(wrong).toEqual([]);
  });
});

it("an additional model in the body has the same permissions as the called one", async () => {
  await using gate = await all.open("messages", {
    identity: { models: ["messages/m", "messages/spare"] },
  });
  const fields = { fallbacks: [{ model: "spare" }] };
  for (const level of ["off", "required"]) {
    const { status, text } = await gate.send("messages", fields, { "service-zdr": level });
    expect([status, text.includes('"spare"')]).toEqual([200, true]);
  }
});

describe("nor for a token count", () => {
  const counting = ROADS.filter(([from]) => from === "messages" || from === "responses");
  it.each(counting)("under Service-ZDR: strict, from %s to %s", async (from, into) => {
    await using gate = await all.open(from);
    const wrong: string[] = [];
    for (const { what, name, fields } of everyNth(12, FOREIGN, columnOf(from, into))) {
      const { text } = await gate.send(into, fields, { "service-zdr": "strict" }, "/toy/count");
      if (seen(what, text)) wrong.push(`${name}: ${text}`);
    }
    expect(wrong).toEqual([]);
  });
});

const NAMING_STATE = FOREIGN.filter(({ what }) => what === "state");

describe("if the operator relays state", () => {
  it.each(ROADS)("none of %s's is sent to %s except in its own protocol", async (from, into) => {
    await using gate = await all.open(from, { stateMode: "relay" });
    const wrong: string[] = [];
    for (const foreign of everyNth(4, NAMING_STATE, columnOf(from, into))) {
      const { text } = await gate.send(into, foreign.fields);
      if (!seen("state", text)) continue;
      const bound = /previous_response_id"|"conversation|"background"/.test(text);
      if (from !== into || bound) wrong.push(`${foreign.name}: ${text}`);
    }
    expect(wrong).toEqual([]);
  });
});

describe("a reference to stored state is forwarded or rejected", () => {
  it.each(ROADS)("never dropped, from %s to %s", async (from, into) => {
    await using gate = await all.open(from);
    const answered: string[] = [];
    for (const { name, fields } of everyNth(4, NAMING_STATE, columnOf(from, into))) {
      const { status, text } = await gate.send(into, fields);
      if (status === 200 || text !== "") answered.push(name);
    }
    expect(answered).toEqual([]);
  });

  it.each(ROADS.filter(([from]) => from === "messages"))(
    "a thread of %s to %s is rejected with the code that makes the SDK send its history",
    async (from, into) => {
      await using gate = await all.open(from);
      const { error, status } = await gate.send(into, {
        thread: { type: "continue", previous_message_id: "msg_1" },
      });
      expect(status).toBe(400);
      expect(error.details.error_code).toBe("thread_unsupported_request");
    },
  );
});

describe("a model that continues a response", () => {
  const target = { provider: "responses", model: "m", credential: "main" };
  const asked = { previous_response_id: "resp_1" };
  it.each([
    ["one that the key may use, by its own name", ["responses/m"], "responses/m", 200],
    ["one that the key may use, by the name it was asked by", ["fast"], "fast", 200],
    ["one that the key may not use", ["responses/other"], "responses/m", 403],
    ["one that the key may not use, by another name", ["responses/other"], "fast", 403],
  ])("is %s", async (_name, models, model, status) => {
    await using gate = await all.open("responses", {
      stateMode: "relay",
      identity: { models },
      read: () => ({ model: target }),
    });
    const got = await gate.send("responses", { ...asked, model });
    expect([got.status, got.text !== ""]).toEqual([status, status === 200]);
  });
});

describe("under Service-ZDR, a rejection names the field and the YAML for the operator", () => {
  it.each(ROADS.filter(([from, into]) => from === into))("%s", async (from, into) => {
    await using gate = await all.open(from);
    const { status, error } = await gate.send(
      into,
      { brand_new: 1 },
      { "service-zdr": "required" },
    );
    expect(status).toBe(400);
    expect(error.code ?? error.details.error_code).toBe("zdr_unknown_field");
    expect(error.param ?? error.details.param).toBe("brand_new");
    expect(error.message).toContain(`providers.${into}: zdr_allowed_fields: ["brand_new"]`);
  });
});

describe.each(["required", "off"])("with Service-ZDR: %s", (level) => {
  it.each(ROADS.filter(([from]) => !isImage(from)))(
    "every documented field in a body of %s for %s is sent as its own protocol has it, or rejected by name",
    async (from, into) => {
      await using gate = await all.open(from);
      const wrong: string[] = [];
      for (const fields of everyNth(12, DOCUMENTED, columnOf(from, into))) {
        const got = await gate.send(into, fields, { "service-zdr": level });
        if (got.status >= 500 && into !== "gemini")
          wrong.push(`${JSON.stringify(fields)}: ${got.status} ${JSON.stringify(got.error)}`);
        if (level === "off" && got.error?.code === "zdr_unknown_field")
          wrong.push(`${JSON.stringify(fields)}: refused without privacy`);
      }
      expect(wrong).toEqual([]);
    },
  );
});

const chats = ROADS.filter(([from]) => !isImage(from));
/** A tool of an undocumented type, declared as each protocol's clients would. */
const strange = (from: string) => ({ tools: [{ type: "wat_tool", name: from }] });

describe("a tool of a type that is newer than the gateway", () => {
  it.each(chats)(
    "in %s for %s is forwarded in its own protocol, and rejected by name in others",
    async (from, into) => {
      await using gate = await all.open(from);
      const open = await gate.send(into, strange(from));
      if (from === into) expect([open.status, open.text.includes("wat_tool")]).toEqual([200, true]);
      else {
        expect([open.status, open.text]).toEqual([400, ""]);
        expect(open.error.message).toContain("wat_tool");
      }
      const secret = await gate.send(into, strange(from), { "service-zdr": "required" });
      expect([secret.status, secret.text]).toEqual([400, ""]);
    },
  );
});

describe("a tool that the client runs", () => {
  const typed = ["bash_20250124", "text_editor_20250728", "memory_20250818", "computer_20251124"];
  it.each(
    chats
      .filter(([from, into]) => from === "messages" && into !== from)
      .flatMap((road) => typed.map((type) => [...road, type] as const)),
  )("is not a hosted tool, from %s to %s: %s", async (from, into, type) => {
    await using gate = await all.open(from);
    const { status, error } = await gate.send(into, { tools: [{ type, name: "its" }] });
    expect([status, error.details.error_code]).toEqual([400, "unsupported_tool"]);
    expect(error.message).toContain(type);
    expect(error.message).not.toMatch(/another provider|own provider/);
  });
  it.each(typed)(
    "%s is sent to providers that support it, also under Service-ZDR",
    async (type) => {
      await using gate = await all.open("messages");
      for (const level of ["off", "required"]) {
        const tools = [{ type, name: "its" }];
        const { status, text } = await gate.send("messages", { tools }, { "service-zdr": level });
        expect([status, text.includes(type)]).toEqual([200, true]);
      }
    },
  );
  it.each(chats)("with the plain name bash is forwarded from %s to %s", async (from, into) => {
    const described = { name: "bash", description: "d" };
    const tool = {
      messages: { ...described, input_schema: { type: "object" } },
      responses: { ...described, type: "function", parameters: { type: "object" } },
      "chat-completions": { type: "function", function: described },
      gemini: { functionDeclarations: [described] },
    }[from];
    await using gate = await all.open(from);
    const { text } = await gate.send(into, { tools: [tool] });
    expect(text).toContain('"bash"');
  });
});

it.each(chats.filter(([from, into]) => from !== into))(
  "mcp_servers are refused like mcp, from %s to %s",
  async (from, into) => {
    await using gate = await all.open(from);
    const servers = [{ type: "url", url: "https://e", name: "x" }];
    const { status, text, error } = await gate.send(into, { mcp_servers: servers });
    expect([status, text]).toEqual([400, ""]);
    expect(error.code ?? error.details.error_code).toBe("unsupported_tool");
    expect(error.param ?? error.details.param).toBe("mcp_servers");
  },
);
