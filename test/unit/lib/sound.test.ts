// The duration of audio by its own file: for every format of real encoders, for false headers, and
// for any bytes.
import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { measureAudio } from "../../../src/lib/sound/audio-duration.ts";
import { lies, type Lie } from "./sound-lies.ts";
import { trialCount } from "../../kit/law-effort.ts";

const FOLDER = new URL("../../fixtures/sounds/", import.meta.url);
/**
 * Each name contains the encoded milliseconds. `at-most`: the maximum that its last frame may lack.
 */
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

/** Encoders add a little at both ends, and one that does not know the end omits its last frame. */
const NEAR = 0.13;

describe("audio of real encoders", () => {
  it("exists in every format", () =>
    expect(new Set(FILES.map(([name]) => name.split(".")[1]))).toEqual(
      new Set(["wav", "flac", "mp3", "ogg", "opus", "m4a", "mp4", "webm"]),
    ));

  it.each(FILES)("%s: %d s", (_name, seconds, file) => {
    const read = measureAudio(file).seconds!;
    expect(Math.abs(read - seconds), String(read)).toBeLessThan(NEAR);
  });

  it("with titles before it, and in an incomplete WAV", () => {
    const of = (end: string) => FILES.find(([name]) => name.endsWith(end))!;
    const tag = Buffer.concat([
      Buffer.from("ID3\x04\0\0\0\0\x08\0", "latin1"),
      Buffer.alloc(1_024, 65),
    ]);
    for (const end of [".mp3", ".flac"]) {
      const [, seconds, file] = of(end);
      const read = measureAudio(Buffer.concat([tag, file])).seconds!;
      expect(Math.abs(read - seconds), end).toBeLessThan(NEAR);
    }
    const [, seconds, wav] = of(".wav");
    const open = Buffer.from(wav);
    open.writeUInt32LE(0xffff_ffff, open.indexOf("data") + 4);
    expect(Math.abs(measureAudio(open).seconds! - seconds)).toBeLessThan(NEAR);
  });
});

/** An exact duration may be too short by this share, because encoders pad both ends and round. */
const SHORTEST = 0.85;

describe("a false header", () => {
  const formats = [...new Set(FILES.map(([name]) => name.split(".")[1]!))];

  it.each(formats)("of %s, patched in every known way, lowers no price", (format) => {
    const told = FILES.filter(([name]) => name.endsWith(`.${format}`));
    let tried = 0;
    for (const [name, seconds, file] of told)
      for (const lie of lies(format, file)) {
        tried++;
        judge(name, seconds, lie);
      }
    expect(tried).toBeGreaterThan(2);
  });

  it("with any two changes lowers none either", () => {
    fc.assert(
      fc.property(fc.constantFrom(...FILES), fc.nat(), fc.nat(), ([name, seconds, file], a, b) => {
        const format = name.split(".")[1]!;
        const first = lies(format, file);
        const one = first[a % first.length]!;
        const second = lies(format, one.file);
        const two = second[b % second.length]!;
        const times = one.times * two.times;
        judge(name, seconds, { what: `${one.what}, ${two.what}`, file: two.file, times });
      }),
      { numRuns: trialCount(400) },
    );
  });

  it("that states more than the bytes can contain is limited to them", () => {
    const [, , wav] = FILES.find(([name]) => name.endsWith(".wav"))!;
    const slow = Buffer.from(wav);
    slow.writeUInt32LE(10, slow.indexOf("fmt ") + 12);
    slow.writeUInt32LE(20, slow.indexOf("fmt ") + 16);
    const { seconds, maxSeconds } = measureAudio(slow);
    expect(seconds).toBeUndefined();
    expect(maxSeconds).toBeGreaterThan((wav.length - 100) / 20);
  });

  function judge(name: string, seconds: number, { what, file, times }: Lie): void {
    const truth = seconds * times;
    const read = measureAudio(file);
    const said = `${name}, ${what}: ${JSON.stringify(read)} for ${truth} s`;
    if (read.seconds !== undefined) expect(read.seconds, said).toBeGreaterThan(truth * SHORTEST);
    expect(read.maxSeconds, said).toBeGreaterThan(truth * SHORTEST);
  }
});

/** Bytes per second that a codec of each format may need, including the container. */
const BITRATES: { readonly [format: string]: readonly [least: number, most: number] } = {
  wav: [4_000, 98_304_000],
  flac: [0, 18_350_000],
  mp3: [1_000, 56_000],
  ogg: [0, 4_608_000],
  opus: [0, 64_000],
  m4a: [0, 96_000],
  mp4: [0, 96_000],
  webm: [0, 64_000],
};

describe("any other file", () => {
  const sane = (file: Buffer) => {
    const { seconds, estimatedSeconds, maxSeconds } = measureAudio(file);
    expect(seconds === undefined || (Number.isFinite(seconds) && seconds > 0)).toBe(true);
    for (const one of [estimatedSeconds, maxSeconds])
      expect(Number.isFinite(one) && one >= 0).toBe(true);
    expect(maxSeconds).toBeGreaterThanOrEqual(Math.max(seconds ?? 0, file.length / 750));
    return seconds;
  };

  it("has a possible duration or none, with any byte changed and truncated anywhere", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...FILES),
        fc.array(fc.tuple(fc.nat(600), fc.nat(255)), { maxLength: 6 }),
        fc.nat(),
        ([name, , file], changes, end) => {
          const odd = Buffer.from(file.subarray(0, end % (file.length + 1)));
          for (const [at, value] of changes) if (at < odd.length) odd[at] = value;
          const seconds = sane(odd);
          if (seconds === undefined) return;
          const [least, most] = BITRATES[name.split(".")[1]!]!;
          expect(odd.length).toBeLessThanOrEqual(seconds * most * 1.2 + 8_192);
          expect(odd.length + 8_192).toBeGreaterThanOrEqual(seconds * least);
        },
      ),
      { numRuns: trialCount(1_500) },
    );
  });

  // Eighty files of 3 MiB each: with a restarting search, this would take hours.
  it("is parsed in linear time", () => {
    const MIB = 1024 * 1024;
    const one = (head: string | Buffer, fill: string | Buffer) => {
      const file = Buffer.alloc(3 * MIB, fill);
      Buffer.from(head as string, "latin1").copy(file);
      return file;
    };
    const OGG = FILES.find(([name]) => name.endsWith(".opus"))![2].subarray(0, 200);
    const heads = [
      "RIFF0000WAVE",
      "OggS\0",
      OGG,
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
      Buffer.from("OggS\0"),
      Buffer.from([0xff, 0xf8, 0x99, 0x18]),
      Buffer.from([0xec, 0x80]),
      Buffer.concat([Buffer.from("OggS\0".padEnd(26, "\0") + "\xff", "latin1"), Buffer.alloc(255)]),
    ];
    for (const head of heads) for (const fill of fills) sane(one(head, fill));
  });
});
