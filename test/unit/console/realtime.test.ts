// The Realtime playground: its audio, and the conversation that it shows.
import { describe, expect, it } from "vitest";
import {
  decodeAudio,
  encodeAudio,
  resample,
} from "../../../plugins/observers/console/web/pages/playground/realtime-audio.ts";
import {
  addEvent,
  EMPTY,
  type Conversation,
} from "../../../plugins/observers/console/web/pages/playground/realtime-conversation.ts";

describe("audio", () => {
  it("survives encoding, and louder samples are limited", () => {
    const decoded = decodeAudio(encodeAudio(Float32Array.of(0, 0.5, -0.5, 2, -2)));
    expect([...decoded].map((sample) => Math.round(sample * 100) / 100)).toEqual([
      0, 0.5, -0.5, 1, -1,
    ]);
    expect(Buffer.from(encodeAudio(Float32Array.of(1)), "base64")).toEqual(Buffer.of(0xff, 0x7f));
  });
  it("is converted to 24 kHz", () => {
    const ramp = Float32Array.from({ length: 480 }, (_, i) => i / 480);
    expect(resample(ramp, 48_000)).toHaveLength(240);
    expect(resample(ramp, 48_000)[10]).toBeCloseTo(20 / 480);
    expect(resample(ramp, 24_000)).toEqual(ramp);
    expect(resample(ramp, 16_000)).toHaveLength(720);
  });
});

const all = (...events: { type: string; [member: string]: unknown }[]): Conversation =>
  events.reduce((before, event) => addEvent(before, event), EMPTY);

describe("the conversation", () => {
  it("joins the pieces of a response, with its usage", () => {
    const usage = { input_tokens: 3, output_tokens: 2 };
    const { turns, log } = all(
      { type: "response.created", response: { id: "r" } },
      { type: "response.output_audio_transcript.delta", response_id: "r", delta: "Hello " },
      { type: "response.output_audio_transcript.delta", response_id: "r", delta: "there" },
      { type: "response.done", response: { id: "r", status: "completed", usage } },
    );
    expect(turns).toEqual([
      { id: "r", speaker: "Model", text: "Hello there", usage, status: "completed" },
    ]);
    expect(log.at(-1)).toBe("← response.done");
  });
  it("shows what was typed and spoken, and errors", () => {
    const { turns, errors } = all(
      {
        type: "conversation.item.create",
        item: { id: "i", content: [{ type: "input_text", text: "Hi" }] },
      },
      { type: "input_audio_buffer.committed", item_id: "s" },
      {
        type: "conversation.item.input_audio_transcription.completed",
        item_id: "s",
        transcript: "How are you?",
      },
      { type: "error", error: { message: "The budget is spent." } },
    );
    expect(turns.map(({ text }) => text)).toEqual(["Hi", "How are you?"]);
    expect(errors).toEqual(["The budget is spent."]);
  });
  it("keeps a bounded log of events", () => {
    let talk = EMPTY;
    for (let i = 0; i < 500; i++) talk = addEvent(talk, { type: `t${i}` });
    expect(talk.log).toHaveLength(200);
    expect(talk.log.at(-1)).toBe("← t499");
  });
});
