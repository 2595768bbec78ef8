// Features that every client must have through the gateway, on an upstream of any protocol.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { UpstreamRequest, Check } from "tollgate/testing";
import type { Question, Setting } from "./client.ts";
import { judge } from "./judge.ts";
import {
  answering,
  looking,
  NOTES,
  PICTURE,
  reading,
  refusing,
  remembering,
  stumbling,
} from "./scripts.ts";
import type { Played, Script } from "./stage.ts";

type Asking = Pick<Question, "words"> & Partial<Question>;

/** Plays one question. */
export async function play(of: Setting, script: Script, asking: Asking): Promise<Played> {
  const cwd = asking.cwd ?? (await of.at.folder());
  const model = of.client.models[0];
  return of.at.play(script, await of.client.asks({ ...of, cwd, model, ...asking }));
}

export function turns(of: Setting): Check[] {
  const { client, at, spoken } = of;
  const check = (name: string, run: () => Promise<void>): Check => ({ name, run });
  const loses = (model: string = client.models[0]) => client.loses(spoken, model);

  return [
    ...client.models.map((model) =>
      check(`a text turn (${model})`, async () => {
        const says = "Héllo 🌍 there.";
        const played = await play(of, () => answering(says), { model, words: "Hello, wörld" });
        judge(played, { says, turns: 1, loses: loses(model) });
      }),
    ),
    ...client.models.map((model) =>
      check(`reads a file through a tool (${model})`, async () => {
        const cwd = await at.folder();
        const file = join(cwd, "note.txt");
        await writeFile(file, NOTES[0]);
        const script = reading([client.reads(file)]);
        const played = await play(of, script, { cwd, model, words: "What does the note say?" });
        judge(played, { says: `I read: ${NOTES[0]}`, turns: 2, loses: loses(model) });
        thoughtCameBack(of, played.asked[1]!);
      }),
    ),
    check("reads two files at once", async () => {
      const cwd = await at.folder();
      const files = NOTES.map((_, i) => join(cwd, `${i}.txt`));
      await Promise.all(files.map((file, i) => writeFile(file, NOTES[i]!)));
      const script = reading(files.map((file) => client.reads(file)));
      const played = await play(of, script, { cwd, words: "What do the notes say?" });
      judge(played, { says: `I read: ${NOTES.join(" ")}`, turns: 2, loses: loses() });
      thoughtCameBack(of, played.asked[1]!);
    }),
    check("looks at a picture", async () => {
      const cwd = await at.folder();
      const file = join(cwd, "dot.png");
      await writeFile(file, PICTURE);
      const script = looking(client.looks(file));
      const played = await play(of, script, { cwd, words: "What is in the picture?" });
      const last = [...loses(), ...client.losesOfPictures(spoken)];
      judge(played, { says: "A dot.", turns: 2, loses: loses(), losesLast: last });
    }),
    check("goes on with a conversation", async () => {
      const cwd = await at.folder();
      const hello = await play(of, () => answering("Hi, Ada."), { cwd, words: "I am Ada." });
      assert.equal(hello.code, 0, hello.err);
      const script = remembering(["I am Ada.", "Hi, Ada."], "You are Ada.");
      const played = await play(of, script, { cwd, words: "Who am I?", again: true });
      judge(played, { says: "You are Ada.", turns: 1, loses: loses() });
      if (client.keepsThoughts) thoughtCameBack(of, played.asked[0]!);
    }),
    check("tries again what was refused or cut", async () => {
      const played = await play(of, stumbling("one two three four"), { words: "Count." });
      assert.equal(played.out.trim(), "one two three four", played.err);
      assert.equal(played.code, 0);
      assert.equal(played.asked.length, 3);
    }),
    check("is told at once what it must do", async () => {
      // Some clients know these error texts and show their own.
      const words = "prompt is too long: 210000 tokens > 200000 maximum";
      const played = await play(of, refusing(400, words), { words: "Hello" });
      assert.equal(played.code, 1);
      assert.match(played.out + played.err, /prompt is too long|ran out of room/i);
    }),
    ...client.own(of),
  ].map(({ name, run }) => ({ name: `${client.name} on ${spoken}: ${name}`, run }));
}

/** The provider that signed reasoning gets its signature back, and no other does. */
export function thoughtCameBack({ spoken }: Setting, asked: UpstreamRequest): void {
  const sent = String(asked.body);
  if (spoken === "chat-completions") assert.doesNotMatch(sent, /tg1\.|"signed"/);
  else assert.match(sent, /"signed"/, "the signature did not come back");
}
