// One floor plan for all protocols: a word of the contract is a file in its half, and says so under its own name.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const ROOT = new URL("../../src/protocols/", import.meta.url).pathname;
const PROTOCOLS = readdirSync(ROOT).filter((id) => existsSync(`${ROOT}${id}/dialect.ts`));

/** What each half does; `survey` is both halves' own. */
const WORDS = ["request", "stream", "whole", "fault", "prepare", "relay", "count", "cap"];
const PICKING =
  /^(?:export )?(?:const|function) (?:isObject|object|list|objects|number|flag|parsed)\b.*\bunknown\b/m;

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
    for (const word of ["request", "stream", "whole", "prepare"])
      expect(files).toContain(`client/${word}.ts`);
  });

  it("has no word of a half at its root", () => {
    expect(files.filter((file) => WORDS.includes(file.replace(/\.ts$/, "")))).toEqual([]);
  });

  it("says each word under its own name", () => {
    for (const word of WORDS)
      for (const half of ["client", "server"])
        if (files.includes(`${half}/${word}.ts`))
          expect(exported(`${half}/${word}.ts`), `${half}/${word}.ts`).toMatch(
            new RegExp(`^export (?:const|function) ${word}\\b`, "m"),
          );
  });

  it("picks JSON apart with what all protocols share", () => {
    expect(files.filter((file) => PICKING.test(exported(file)))).toEqual([]);
  });
});
