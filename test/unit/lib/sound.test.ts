// How long a sound is, by its own file: of every format, as real encoders write it, and of whatever else a client may send.
import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { secondsOf } from "../../../src/lib/sound/seconds.ts";

const FOLDER = new URL("../../fixtures/sounds/", import.meta.url);
/** Each says in its name how many milliseconds were encoded; `at-most`: how many its last piece may miss. */
const FILES = readdirSync(FOLDER)
  .filter((name) => /-\d+ms\./.test(name))
  .map(
    (name) =>
      [
        name,
        Number(/-(\d+)ms\./.exec(name)![1]) / 1000,
        readFileSync(new URL(name, FOLDER)),
      ] as const,
  );

/** Encoders add a little at both ends, and one that does not know the end leaves out its last piece. */
const NEAR = 0.13;

describe("as encoders write it", () => {
  it("every format is there", () =>
    expect(new Set(FILES.map(([name]) => name.split(".")[1]))).toEqual(
      new Set(["wav", "flac", "mp3", "ogg", "opus", "m4a", "mp4", "webm"]),
    ));

  it.each(FILES)("%s: %d s", (_name, seconds, file) => {
    const read = secondsOf(file)!;
    expect(Math.abs(read - seconds), String(read)).toBeLessThan(NEAR);
  });

  it("with titles before it, and in a WAV that was never finished", () => {
    const of = (end: string) => FILES.find(([name]) => name.endsWith(end))!;
    const tag = Buffer.concat([
      Buffer.from("ID3\x04\0\0\0\0\x08\0", "latin1"),
      Buffer.alloc(1_024, 65),
    ]);
    for (const end of [".mp3", ".flac"]) {
      const [, seconds, file] = of(end);
      const read = secondsOf(Buffer.concat([tag, file]))!;
      expect(Math.abs(read - seconds), end).toBeLessThan(NEAR);
    }
    const [, seconds, wav] = of(".wav");
    const open = Buffer.from(wav);
    open.writeUInt32LE(0xffff_ffff, open.indexOf("data") + 4);
    expect(Math.abs(secondsOf(open)! - seconds)).toBeLessThan(NEAR);
  });
});

describe("whatever else it is", () => {
  const sane = (file: Buffer) => {
    const seconds = secondsOf(file);
    expect(seconds === undefined || (Number.isFinite(seconds) && seconds > 0)).toBe(true);
  };

  it("is a number of seconds or none, with any byte changed and cut anywhere", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...FILES.map(([, , file]) => file)),
        fc.array(fc.tuple(fc.nat(600), fc.nat(255)), { maxLength: 6 }),
        fc.nat(),
        (file, changes, end) => {
          const odd = Buffer.from(file.subarray(0, end % (file.length + 1)));
          for (const [at, value] of changes) if (at < odd.length) odd[at] = value;
          sane(odd);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  // Forty-two files of 24 MiB each: with a search that starts over it would take hours.
  it("is looked at in time that its length bounds", () => {
    const MIB = 1024 * 1024;
    const one = (head: string | Buffer, fill: string | Buffer) => {
      const file = Buffer.alloc(24 * MIB, fill);
      Buffer.from(head as string, "latin1").copy(file);
      return file;
    };
    const heads = [
      "RIFF0000WAVE",
      "OggS\0",
      "0000ftyp",
      Buffer.from([0x1a, 0x45, 0xdf, 0xa3]),
      "ID3",
      "fLaC",
      "",
    ];
    const fills = [
      Buffer.from([0xff]),
      Buffer.from([0]),
      Buffer.from("OggS"),
      Buffer.from([0x1f, 0x43, 0xb6, 0x75]),
      Buffer.from([0xff, 0xfb, 0x90, 0]),
      Buffer.from([0, 0, 0, 8, 102, 114, 101, 101]),
    ];
    for (const head of heads) for (const fill of fills) sane(one(head, fill));
  });
});
