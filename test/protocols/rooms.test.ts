// One floor plan for all protocols: a member of the contract is a file in its half, which exports it under its own name.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const ROOT = new URL("../../src/protocols/", import.meta.url).pathname;
const PROTOCOLS = readdirSync(ROOT).filter((id) => existsSync(`${ROOT}${id}/dialect.ts`));

/** The files of each half with what they export; `analyze` is both halves' own. */
const HALVES = {
  client: {
    request: "encodeRequest",
    stream: "createDecoder|failNotStreamed",
    response: "decodeResponse",
    fault: "decodeFault",
    prepare: "prepare",
    passthrough: "createPassthrough",
    count: "decodeCount",
    "cap-output": "capOutput",
  },
  server: {
    request: "decodeRequest",
    stream: "createEncoder|failStreamed",
    response: "encodeResponse",
    fault: "encodeFault",
    prepare: "prepare",
    passthrough: "createPassthrough",
    count: "encodeCount",
    "cap-output": "capOutput",
  },
};
const WORDS = Object.keys(HALVES.client);
const PICKING =
  /^(?:export )?(?:const|function) (?:isObject|asObject|asList|asObjects|asNumber|asBoolean|parsed)\b.*\bunknown\b/m;

it("is about the eleven", () =>
  expect(PROTOCOLS).toEqual([
    "chat-completions",
    "completions",
    "embeddings",
    "gemini",
    "images",
    "messages",
    "moderations",
    "rerank",
    "responses",
    "speech",
    "transcriptions",
  ]));

describe.each(PROTOCOLS)("%s", (id) => {
  const files = readdirSync(`${ROOT}${id}`, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const exported = (file: string) => readFileSync(`${ROOT}${id}/${file}`, "utf8");

  it("has a client half, with a file for each word that every client half has", () => {
    for (const word of ["request", "stream", "response", "prepare"])
      expect(files).toContain(`client/${word}.ts`);
  });

  it("has no word of a half at its root", () => {
    expect(files.filter((file) => WORDS.includes(file.replace(/\.ts$/, "")))).toEqual([]);
  });

  it("says each word under its own name", () => {
    for (const [half, words] of Object.entries(HALVES))
      for (const [word, name] of Object.entries(words))
        if (files.includes(`${half}/${word}.ts`))
          expect(exported(`${half}/${word}.ts`), `${half}/${word}.ts`).toMatch(
            new RegExp(`^export (?:(?:const|function)|\\{) (?:${name})\\b`, "m"),
          );
  });

  it("picks JSON apart with what all protocols share", () => {
    expect(files.filter((file) => PICKING.test(exported(file)))).toEqual([]);
  });
});
