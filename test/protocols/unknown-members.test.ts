// No silent loss: a member that no codec knows, in any position of a request, is sent upstream or
// reported.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ClientHalf, type Operation } from "tollgate/plugin";
import { createCallContext, deepFreeze, encodeOutgoing } from "tollgate/testing";
import { requests } from "./generators/arbitrary.ts";
import { bodies as geminiBodies } from "./gemini/fields.ts";
import { bodies as chatBodies } from "./chat-completions/fields.ts";
import { chats, upstreams } from "./generators/codecs.ts";
import { bodies as messagesBodies } from "./messages/fields.ts";
import { bodies as anyMessages } from "./messages/bodies.ts";
import { bodies as responsesBodies } from "./responses/fields.ts";
import {
  isPrivate,
  NAME,
  places,
  read,
  sent,
  silence,
  touched,
  visited,
  type Path,
} from "./generators/unknown-members.ts";
import { everyNth, trialCount } from "../kit/law-effort.ts";

const WRITTEN: { readonly [protocol: string]: readonly object[] } = {
  "chat-completions": chatBodies,
  messages: messagesBodies,
  responses: responsesBodies,
  gemini: geminiBodies,
};
const pairs = Object.keys(chats).flatMap((a) =>
  Object.keys(upstreams).map((b): [string, string] => [a, b]),
);

/** As clients send it, at random. */
const WRITING: { readonly [protocol: string]: fc.Arbitrary<object> } = {
  "chat-completions": spoken("chat-completions"),
  messages: fc.oneof(spoken("messages"), anyMessages),
  responses: spoken("responses"),
  gemini: spoken("gemini"),
};

function spoken(protocol: string): fc.Arbitrary<object> {
  const client = chats[protocol]!.client as ClientHalf<Operation>;
  return requests({ media: true, interjections: true }).map((request) => {
    const { body } = encodeOutgoing(
      client,
      deepFreeze(request),
      createCallContext({ model: request.model }),
    );
    return JSON.parse(JSON.stringify(body));
  });
}

describe.each(pairs)("an unknown field in a request from %s to %s", (from, into) => {
  const [a, b] = [chats[from]!, upstreams[into]!];
  const open = (at: Path) => from === into || !isPrivate(at);

  it("is forwarded or reported, in any position", () => {
    const silent = WRITTEN[from]!.flatMap((body) =>
      places(body)
        .filter(open)
        .flatMap((at) => silence(a, b, body, at) ?? []),
    );
    expect([...new Set(silent)]).toEqual([]);
  });

  it("is forwarded or reported under any name", () => {
    const silent = WRITTEN[from]!.flatMap((body, column) =>
      everyNth(3, places(body).filter(open), column).flatMap(
        (at) => silence(a, b, body, at, undefined, "__proto__") ?? [],
      ),
    );
    expect([...new Set(silent)]).toEqual([]);
  });

  it("is forwarded or reported after a hook edited everything", () => {
    const silent = WRITTEN[from]!.flatMap((body, column) =>
      everyNth(3, places(body).filter(open), column).flatMap(
        (at) => silence(a, b, body, at, touched) ?? [],
      ),
    );
    expect([...new Set(silent)]).toEqual([]);
  });

  it("is forwarded or reported in random requests", () => {
    fc.assert(
      fc.property(WRITING[from]!, fc.nat(), (body, chance) => {
        const all = places(body).filter(open);
        expect(silence(a, b, body, all[chance % all.length]!)).toBeUndefined();
      }),
      { numRuns: trialCount(300) },
    );
  });
});

describe.each(Object.entries(chats))("an unedited request in %s", (name, codec) => {
  it("keeps every unknown field without a warning", () => {
    const lost = WRITTEN[name]!.flatMap((body) =>
      places(body).flatMap((at) => {
        const after = sent(codec, read(codec, visited(body, at)));
        const before = sent(codec, read(codec, body));
        if (after === "refused" || before === "refused") return [];
        const told = after.losses.length > before.losses.length;
        return after.text.includes(NAME) && !told ? [] : at.join(".");
      }),
    );
    expect([...new Set(lost)]).toEqual(ALONE[name] ?? []);
  });
});

/** If even the same protocol has no place for it: the field is sent under its newer name. */
const ALONE: { readonly [protocol: string]: readonly string[] } = {
  "chat-completions": ["functions.0"],
};
