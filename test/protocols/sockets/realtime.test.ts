import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault, type Usage } from "tollgate/plugin";
import { realtime } from "tollgate/protocols/realtime";
import { trialCount } from "../../kit/law-effort.ts";
import { MeteredLink } from "../../kit/sockets/metered.ts";
import {
  RealtimeSession,
  silence,
  speech,
  type RealtimeOptions,
  type RealtimeUsage,
  type ReportedResponse,
} from "../../kit/sockets/realtime-upstream.ts";

const linked = (options: RealtimeOptions = {}, more: object = {}) => {
  const responses: ReportedResponse[] = [];
  const transcriptions: { item: string; usage: object }[] = [];
  const link = new MeteredLink(
    realtime(),
    (socket) => new RealtimeSession(socket, { responses, transcriptions }, () => options),
    more,
  );
  return { link, responses, transcriptions };
};

/** Adds a message of the user. */
const say = (text: string) => ({
  type: "conversation.item.create",
  item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
});
const ask = (more: object = {}) => ({ type: "response.create", ...more });
const hear = (audio: string) => ({ type: "input_audio_buffer.append", audio });
const update = (session: object) => ({ type: "session.update", session });
const transcribe = (model: string) =>
  update({ type: "realtime", audio: { input: { transcription: { model } } } });

/** The ledger's units of a report. */
const unitsOf = (u: RealtimeUsage): Usage => {
  const { cached_tokens_details: cached, ...input } = u.input_token_details;
  const units = {
    audio_in: input.audio_tokens - cached.audio_tokens,
    cache_read_audio: cached.audio_tokens,
    image_in: input.image_tokens - cached.image_tokens,
    cache_read_image: cached.image_tokens,
    audio_out: u.output_token_details.audio_tokens,
  };
  return {
    input: input.text_tokens - cached.text_tokens,
    cache_read: cached.text_tokens,
    output: u.output_token_details.text_tokens,
    ...Object.fromEntries(Object.entries(units).filter(([, count]) => count > 0)),
  };
};

const faultOf = async (run: () => unknown) => {
  try {
    await run();
  } catch (error) {
    return getFault(error);
  }
  return undefined;
};

describe("the Realtime meter", () => {
  it("begins a response before it is asked for upstream, and ends it with the reported counts", async () => {
    const { link, responses } = linked();
    await link.send(say("Hello"));
    await link.send(ask());
    const [response] = link.sink.responses;
    expect(link.sink.responses).toHaveLength(1);
    expect(response).toMatchObject({ id: responses[0]!.id, state: "ended", finish: "stop" });
    expect(response!.usage).toEqual(unitsOf(responses[0]!.usage!));
    expect(response!.usage).toMatchObject({ input: 21, audio_out: 6, output: 3 });
  });

  it("counts audio, images, and what was cached of them, each by itself", async () => {
    const { link, responses } = linked();
    await link.send({
      type: "conversation.item.create",
      item: {
        type: "message",
        role: "user",
        content: [
          { type: "input_audio", audio: speech(5) },
          { type: "input_image", image_url: "data:image/png;base64,AA==" },
          { type: "input_text", text: "What is this" },
        ],
      },
    });
    await link.send(ask());
    await link.send(say("And now"));
    await link.send(ask());
    expect(link.sink.responses.map((r) => r.usage)).toEqual(
      responses.map((r) => unitsOf(r.usage!)),
    );
    expect(link.sink.responses[1]!.usage).toEqual({
      input: 5,
      cache_read: 23,
      output: 3,
      audio_in: 6,
      cache_read_audio: 5,
      cache_read_image: 85,
      audio_out: 6,
    });
  });

  it("begins a response that the provider starts because the user stopped speaking", async () => {
    const { link, responses } = linked();
    await link.send(hear(speech(10)));
    await link.send(hear(silence(3)));
    const [response] = link.sink.responses;
    expect(response).toMatchObject({ id: responses[0]!.id, finish: "stop" });
    expect(response!.usage).toEqual(unitsOf(responses[0]!.usage!));
    expect(response!.of.facts!.expectedUsage).toMatchObject({ audio_in: 10 });
  });

  it("reserves what the conversation has, by type, and the limit of the response", async () => {
    const { link } = linked();
    await link.send(update({ type: "realtime", max_output_tokens: 300 }));
    await link.send(say("x".repeat(300)));
    await link.send(hear(speech(20)));
    await link.send({ type: "input_audio_buffer.commit" });
    await link.send(ask());
    await link.send(ask({ response: { max_output_tokens: 50 } }));
    const [first, second] = link.sink.responses;
    const { facts } = first!.of;
    expect(facts).toMatchObject({ maxOutput: 300 });
    expect(facts!.expectedUsage!.input).toBeGreaterThanOrEqual(100);
    expect(facts!.maxUsage!.input).toBeGreaterThanOrEqual(300);
    expect(facts!.expectedUsage!.audio_in).toBe(20);
    expect(facts!.maxUsage!.audio_in).toBeGreaterThanOrEqual(20);
    expect(second!.of.facts).toMatchObject({ maxOutput: 50 });
  });

  it("bills a response that the user interrupts for what it reports", async () => {
    const { link, responses } = linked({ words: "one two three four" });
    const interrupt = link.meter;
    await link.send(say("Hello"));
    const asked = link.send(ask());
    await link.send({ type: "response.cancel" });
    await asked;
    expect(responses[0]!.status).toBe("cancelled");
    expect(link.sink.responses[0]).toMatchObject({ finish: "other" });
    expect(link.sink.responses[0]!.usage).toEqual(unitsOf(responses[0]!.usage!));
    expect(interrupt.encodeCancel(link.sink.responses[0]!)).toBeUndefined();
  });

  it("names the running response in the message that cancels it", () => {
    const { link } = linked();
    link.deliver(JSON.stringify({ type: "response.created", response: { id: "resp_9" } }));
    expect(JSON.parse(String(link.meter.encodeCancel(link.sink.responses[0]!)))).toEqual({
      type: "response.cancel",
      response_id: "resp_9",
    });
  });

  it("estimates from the audio that was relayed at every moment", async () => {
    const { link } = linked();
    await link.send(say("Hello"));
    link.left = 12;
    await link.send(ask());
    const [response] = link.sink.responses;
    const audio = link.received("response.output_audio.delta").length;
    expect(audio).toBeGreaterThan(0);
    expect(response!.state).toBe("running");
    expect(response!.estimate).toMatchObject({ audio_out: audio * 2 });
    expect(response!.estimate!.input).toBeGreaterThan(0);
  });

  it("estimates the input of a response that the provider has not begun", async () => {
    const { link } = linked();
    await link.send(say("Hello"));
    link.left = 0;
    await link.send(ask());
    expect(link.sink.responses[0]!.estimate!.input).toBeGreaterThan(0);
  });

  it.each([
    ["g711_ulaw", 8_000],
    [{ type: "audio/pcma" }, 8_000],
    [{ type: "audio/pcm", rate: 8_000 }, 16_000],
    [undefined, 48_000],
  ])("knows the rate of %j", (format, rate) => {
    const { link } = linked();
    link.deliver(
      JSON.stringify({
        type: "session.updated",
        session: { model: "m", audio: { output: { format } } },
      }),
    );
    link.deliver(JSON.stringify({ type: "response.created", response: { id: "r" } }));
    link.deliver(
      JSON.stringify({
        type: "response.output_audio.delta",
        response_id: "r",
        delta: Buffer.alloc(rate).toString("base64"),
      }),
    );
    expect(link.sink.responses[0]!.estimate).toMatchObject({ audio_out: 20 });
  });

  it("splits counts without types as the conversation is, and reports them as an estimate", async () => {
    const { link } = linked({ hidesUsage: true });
    await link.send(hear(speech(10)));
    link.deliver(JSON.stringify({ type: "input_audio_buffer.committed", item_id: "i" }));
    link.deliver(JSON.stringify({ type: "response.created", response: { id: "r" } }));
    link.deliver(
      JSON.stringify({
        type: "response.done",
        response: { id: "r", status: "completed", usage: { input_tokens: 100, output_tokens: 5 } },
      }),
    );
    const [response] = link.sink.responses;
    expect(response!.usage).toBeUndefined();
    const { input = 0, audio_in: audio = 0 } = response!.estimate!;
    expect(input + audio).toBe(100);
    expect(audio).toBeGreaterThan(0);
  });

  it.each([
    ["whisper-1", { seconds: 2 }],
    ["gpt-4o-transcribe", { input: 0, audio_in: 20, output: 5 }],
  ])("bills the transcription by %s apart from the response", async (model, usage) => {
    const { link } = linked();
    await link.send(transcribe(model));
    await link.send(hear(speech(20)));
    await link.send(hear(silence(3)));
    const [transcription, response] = link.sink.responses;
    expect(transcription).toMatchObject({ of: { model }, usage, finish: "stop" });
    expect(response!.of.model).toBeUndefined();
    expect(response!.usage).toMatchObject({ audio_out: 6 });
  });

  it("bills nothing for a transcription that failed", async () => {
    const { link } = linked();
    await link.send(transcribe("whisper-1"));
    link.deliver(JSON.stringify({ type: "input_audio_buffer.committed", item_id: "i" }));
    link.deliver(
      JSON.stringify({
        type: "conversation.item.input_audio_transcription.failed",
        item_id: "i",
        error: { type: "server_error", code: "x", message: "y" },
      }),
    );
    expect(link.sink.responses[0]).toMatchObject({ usage: { seconds: 0 }, state: "ended" });
  });

  it("ends a response that the provider refuses to begin", async () => {
    const { link } = linked();
    link.deliver(JSON.stringify({ type: "response.created", response: { id: "other" } }));
    link.meter.readClientMessage(JSON.stringify(ask({ event_id: "mine" })));
    link.deliver(
      JSON.stringify({
        type: "error",
        error: { type: "invalid_request_error", message: "busy", event_id: "mine" },
      }),
    );
    expect(link.sink.responses.map((r) => r.state)).toEqual(["running", "ended"]);
    expect(link.sink.responses[1]).toMatchObject({ fault: "invalid", id: undefined });
  });

  it("does not take a spoken response for one whose reservation is not made", () => {
    const { link } = linked();
    link.sink.starts = "reserving";
    link.meter.readClientMessage(JSON.stringify(ask()));
    link.deliver(JSON.stringify({ type: "response.created", response: { id: "spoken" } }));
    expect(link.sink.responses.map((r) => r.id)).toEqual([undefined, "spoken"]);
    const [asked] = link.sink.responses;
    asked!.state = "running";
    link.deliver(JSON.stringify({ type: "response.created", response: { id: "asked" } }));
    expect(link.sink.responses.map((r) => r.id)).toEqual(["asked", "spoken"]);
  });

  it("replaces the client's name of the model, and rejects any other model", async () => {
    const { link } = linked();
    await link.send(update({ type: "realtime", model: "vendor/m" }));
    expect(JSON.parse(link.toProvider[0]!)).toEqual(update({ type: "realtime", model: "m" }));
    const fault = await faultOf(() => link.send(update({ model: "larger" })));
    expect(fault).toMatchObject({ kind: "invalid", code: "model_fixed", param: "session.model" });
    expect(link.toProvider).toHaveLength(1);
  });

  it("rejects a transcription model that the key may not use", async () => {
    const { link } = linked();
    link.sink.deniedModels.add("whisper-1");
    expect(await faultOf(() => link.send(transcribe("whisper-1")))).toMatchObject({
      kind: "forbidden",
    });
  });

  it.each([
    { tracing: "auto" },
    { prompt: { id: "pmpt_1" } },
    { tools: [{ type: "mcp", server_label: "x", server_url: "https://x.example" }] },
  ])("rejects %j of a private session", async (session) => {
    const { link } = linked({}, { privacy: "required" });
    expect(await faultOf(() => link.send(update(session)))).toMatchObject({ kind: "privacy" });
    const open = linked();
    expect(await faultOf(() => open.link.send(update(session)))).toBeUndefined();
  });

  it.each([
    ["{", "invalid_message"],
    ["[]", "invalid_message"],
    ["{}", "invalid_message"],
    ['{"type":"session.destroy"}', "unknown_event"],
    ['{"type":"__proto__"}', "unknown_event"],
  ])("rejects the message %s", async (message, code) => {
    const { link } = linked();
    expect(await faultOf(() => link.send(message))).toMatchObject({ kind: "invalid", code });
    expect(link.toProvider).toEqual([]);
  });

  it("writes an error event that repeats the id of the client's event", () => {
    const { message } = realtime().socket!.encodeFault(
      { kind: "quota", message: "The budget is used up." },
      { id: "req_1", message: JSON.stringify(ask({ event_id: "mine" })) },
    );
    expect(JSON.parse(String(message))).toEqual({
      type: "error",
      event_id: "event_req_1",
      error: {
        type: "insufficient_quota",
        code: "insufficient_quota",
        message: "The budget is used up.",
        param: null,
        event_id: "mine",
      },
    });
  });

  it("drops the rate limits of the operator's account", async () => {
    const { link } = linked();
    await link.send(ask());
    expect(link.received("response.done")).toHaveLength(1);
    expect(link.received("rate_limits.updated")).toEqual([]);
  });

  it("shows the text of a response to hooks, and the text of the client before it", async () => {
    const { link } = linked();
    await link.send(say("Tell me"));
    await link.send(ask({ response: { instructions: "Be kind." } }));
    const [response] = link.sink.responses;
    expect(response!.of.request).toMatchObject({
      operation: "realtime",
      model: "vendor/m",
      instructions: [{ type: "text", text: "Be kind." }],
      turns: [{ role: "user", blocks: [{ type: "text", text: "Tell me" }] }],
    });
    const text = response!.events.map((e) => (e.type === "delta" ? e.text : "")).join("");
    expect(text).toBe("Hello there friend");
    expect(response!.events.at(0)?.type).toBe("open");
    expect(response!.events.at(-1)?.type).toBe("close");
  });

  it("ends the connection if the provider changes the model", async () => {
    const { link } = linked();
    const changed = JSON.stringify({ type: "session.updated", session: { model: "larger" } });
    expect(await faultOf(() => link.deliver(changed))).toMatchObject({ kind: "upstream" });
  });
});

/** What a client may do, in any order. */
const action = fc.oneof(
  fc.constant(say("Hello there")),
  fc.constant(ask()),
  fc.constant(ask({ event_id: "e", response: { output_modalities: ["text"] } })),
  fc.constant(ask({ response: { conversation: "none" } })),
  fc.nat(12).map((tenths) => hear(speech(tenths + 1))),
  fc.constant(hear(silence(3))),
  fc.constant({ type: "input_audio_buffer.commit" }),
  fc.constant({ type: "input_audio_buffer.clear" }),
  fc.constant({ type: "response.cancel" }),
  fc.constant(transcribe("whisper-1")),
  fc.constant(transcribe("gpt-4o-transcribe")),
  fc.constant(update({ audio: { input: { turn_detection: null } } })),
);

describe("the law of the Realtime meter", () => {
  it("every response that the client saw end has one bill with the same counts, wherever it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 12 }),
        fc.option(fc.nat(120)),
        async (actions, cut) => {
          const { link, transcriptions } = linked();
          if (cut !== null) link.left = cut;
          for (const one of actions) await link.send(one);
          const { responses } = link.sink;
          const seen = link.received("response.done").map((event) => event["response"]);
          for (const { id, usage } of seen) {
            const bills = responses.filter((r) => r.id === id);
            expect(bills).toHaveLength(1);
            expect(bills[0]).toMatchObject({ state: "ended" });
            expect(bills[0]!.usage).toEqual(unitsOf(usage as RealtimeUsage));
          }
          const heard = link.received("conversation.item.input_audio_transcription.completed");
          expect(transcriptions.length).toBeGreaterThanOrEqual(heard.length);
          const transcribed = responses.filter((r) => r.of.model && r.state === "ended");
          expect(transcribed).toHaveLength(heard.length);
          // What is open has an estimate, from which the host bills it.
          for (const open of responses)
            if (open.state !== "ended" && open.id !== undefined)
              expect(open.estimate).toBeDefined();
        },
      ),
      { numRuns: trialCount(300) },
    );
  });

  it("takes any message of either side", () => {
    const json = fc.json({ maxDepth: 3 });
    const types = [
      "session.created",
      "session.updated",
      "response.created",
      "response.done",
      "response.output_audio.delta",
      "response.function_call_arguments.delta",
      "response.output_item.added",
      "conversation.item.input_audio_transcription.completed",
      "input_audio_buffer.committed",
      "input_audio_buffer.speech_stopped",
      "error",
      "session.update",
      "conversation.item.create",
      "response.create",
      "input_audio_buffer.append",
    ];
    const names = ["response", "session", "item", "usage", "audio", "delta", "error", "id"];
    const event = fc
      .record({
        type: fc.constantFrom(...types),
        response: fc.oneof(
          json.map((text) => JSON.parse(text) as unknown),
          fc.record({
            id: fc.constantFrom("a", "b"),
            usage: fc.dictionary(
              fc.constantFrom("input_tokens", "output_tokens", "input_token_details"),
              fc.oneof(
                fc.integer(),
                fc.double(),
                fc.constant({ audio_tokens: -1, cached_tokens: 1e12 }),
              ),
            ),
          }),
        ),
        more: fc.dictionary(
          fc.constantFrom(...names),
          json.map((text) => JSON.parse(text) as unknown),
        ),
      })
      .map(({ type, response, more }) => JSON.stringify({ type, response, ...more }));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.oneof(event, json, fc.string())), { maxLength: 20 }),
        (messages) => {
          const { link } = linked();
          for (const [isClient, message] of messages)
            try {
              if (isClient) link.meter.readClientMessage(message);
              else link.meter.readProviderMessage(message);
            } catch (error) {
              expect(getFault(error), String(error)).toBeDefined();
            }
          for (const { usage = {}, estimate = {} } of link.sink.responses)
            for (const count of [...Object.values(usage), ...Object.values(estimate)])
              expect(count! >= 0 && Number.isFinite(count)).toBe(true);
        },
      ),
      { numRuns: trialCount(500) },
    );
  });
});
