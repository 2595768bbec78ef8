import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import type { ModelInfo } from "../../../src/model/facts.ts";
import {
  requireSupported,
  ratioOf,
  sizeOf,
  sniffImage,
} from "../../../src/protocols/images/index.ts";
import { png } from "./pictures.ts";

const side = fc.integer({ min: 1, max: 20_000 });

describe("sizes", () => {
  it("are parsed as they are formatted, and nothing else is parsed", () => {
    fc.assert(
      fc.property(side, side, (width, height) => {
        expect(sizeOf(`${width}x${height}`)).toEqual({ width, height });
      }),
    );
    for (const other of ["auto", "", "x", "0x5", "5x", "1024X768", "2K", "16:9", "-1x5", undefined])
      expect(sizeOf(other)).toBeUndefined();
  });

  it("a ratio is in lowest terms and has the same shape", () => {
    fc.assert(
      fc.property(side, side, fc.integer({ min: 1, max: 9 }), (width, height, k) => {
        const ratio = ratioOf({ width, height });
        const [w, h] = ratio.split(":").map(Number);
        expect(w! * height).toBe(h! * width);
        expect(ratioOf({ width: width * k, height: height * k })).toBe(ratio);
      }),
    );
  });

  it("the nearest known ratio is the closest one, also for the rotated image", () => {
    const known = ["1:1", "3:2", "2:3", "16:9", "9:16"];
    const turned = (r: string) => r.split(":").reverse().join(":");
    fc.assert(
      fc.property(side, side, (width, height) => {
        const ratio = ratioOf({ width, height }, known);
        const far = (r: string) => {
          const [w, h] = r.split(":").map(Number);
          return Math.abs(Math.log((width * h!) / (height * w!)));
        };
        if (!known.includes(ratio)) throw new Error(ratio);
        for (const other of known) expect(far(ratio)).toBeLessThanOrEqual(far(other) + 1e-9);
        expect(far(turned(ratioOf({ width: height, height: width }, known)))).toBeCloseTo(
          far(ratio),
        );
      }),
    );
    expect(ratioOf({ width: 1920, height: 1080 }, known)).toBe("16:9");
    expect(ratioOf({ width: 1792, height: 1024 }, known)).toBe("16:9");
  });
});

describe("an unsupported option is rejected with the supported values", () => {
  const info = (more: Partial<ModelInfo>): ModelInfo => ({
    model: "m",
    operation: "image",
    ...more,
  });
  const refusal = (...of: Parameters<typeof requireSupported>) => {
    try {
      requireSupported(...of);
      return undefined;
    } catch (error) {
      return getFault(error);
    }
  };
  it("and unknown ones are forwarded", () => {
    expect(
      refusal({ n: 99, size: "9x9", quality: "odd", format: "bmp" }, info({})),
    ).toBeUndefined();
  });
  it("number, size, quality, format", () => {
    const model = info({
      limits: { images: 2 },
      image: {
        sizes: ["1024x1024", "auto"],
        qualities: ["low", "high"],
        formats: ["png"],
      },
    });
    expect(
      refusal({ n: 2, size: "1024x1024", quality: "low", format: "png" }, model),
    ).toBeUndefined();
    expect(refusal({ size: "auto" }, model)).toBeUndefined();
    expect(refusal({ n: 3 }, model)).toMatchObject({
      kind: "unsupported",
      param: "n",
      message: "m supports at most 2 images at a time.",
    });
    expect(refusal({ size: "512x512" }, model)).toMatchObject({
      param: "size",
      message: "m supports the sizes 1024x1024, auto.",
    });
    expect(refusal({ quality: "hd" }, model)).toMatchObject({
      param: "quality",
      message: "m supports the qualities low, high.",
    });
    expect(refusal({ format: "webp" }, model)).toMatchObject({ param: "output_format" });
  });
  it("free sizes have limits and a step", () => {
    const model = info({
      image: { sizes: ["1000x1000"], sides: { min: 64, max: 2048, step: 16 } },
    });
    for (const size of ["64x2048", "1024x768", "1000x1000", "auto"])
      expect(refusal({ size }, model)).toBeUndefined();
    for (const size of ["63x64", "2064x64", "1024x1001"])
      expect(refusal({ size }, model)).toMatchObject({
        message: "m supports the sizes 1000x1000, or sides of 64 to 2048 pixels, multiples of 16.",
      });
  });
});

describe("the first bytes of an image", () => {
  const JPEG = (w: number, h: number, padding: number): Buffer => {
    const app = Buffer.alloc(padding + 4, 0x20);
    app.set([0xff, 0xe1]);
    app.writeUInt16BE(padding + 2, 2);
    const sof = Buffer.from([0xff, 0xff, 0xc2, 0, 17, 8, 0, 0, 0, 0, 3, 0, 0, 0, 0]);
    sof.writeUInt16BE(h, 6);
    sof.writeUInt16BE(w, 8);
    return Buffer.concat([Buffer.from([0xff, 0xd8]), app, sof]);
  };
  const webp = (chunk: string, fill: (b: Buffer) => void): Buffer => {
    const b = Buffer.alloc(40);
    b.write("RIFF", 0, "latin1");
    b.write(`WEBP${chunk}`, 8, "latin1");
    fill(b);
    return b;
  };
  const CASES = [
    ["a PNG", () => png(7, 5), { mime: "image/png", size: { width: 7, height: 5 } }],
    [
      "a JPEG",
      () => JPEG(640, 480, 3_000),
      { mime: "image/jpeg", size: { width: 640, height: 480 } },
    ],
    [
      "a GIF",
      () => Buffer.from("GIF89a\x07\x00\x05\x00rest", "latin1"),
      { mime: "image/gif", size: { width: 7, height: 5 } },
    ],
    [
      "a lossy WebP",
      () =>
        webp("VP8 ", (b) => {
          b.writeUInt16LE(700, 26);
          b.writeUInt16LE(500, 28);
        }),
      { mime: "image/webp", size: { width: 700, height: 500 } },
    ],
    [
      "a lossless WebP",
      () => webp("VP8L", (b) => b.writeUInt32LE(699 | (499 << 14), 21)),
      { mime: "image/webp", size: { width: 700, height: 500 } },
    ],
    [
      "an extended WebP",
      () =>
        webp("VP8X", (b) => {
          b.writeUIntLE(699, 24, 3);
          b.writeUIntLE(499, 27, 3);
        }),
      { mime: "image/webp", size: { width: 700, height: 500 } },
    ],
    [
      "an SVG",
      () => Buffer.from('<?xml version="1.0"?>\n<!-- x -->\n<svg xmlns="…"/>'),
      { mime: "image/svg+xml" },
    ],
    ["a JPEG without a frame", () => Buffer.from("ffd8ffe000", "hex"), { mime: "image/jpeg" }],
    ["text", () => Buffer.from("<html><svg>"), undefined],
    ["nothing", () => Buffer.alloc(0), undefined],
  ] as const;
  for (const [name, make, seen] of CASES)
    it(`${name}, as bytes and as base64`, () => {
      expect(sniffImage({ bytes: make() })).toEqual(seen);
      expect(sniffImage({ base64: make().toString("base64") })).toEqual(seen);
    });
  it("remote images are not inspected", () => {
    expect(sniffImage({ url: "https://x.test/a.png" })).toBeUndefined();
    expect(sniffImage({ fileId: "f", origin: "o" })).toBeUndefined();
  });
  it("no bytes cause an error", () => {
    const magic = fc.constantFrom("", "ffd8ff", "89504e470d0a1a0a", "52494646", "47494638");
    fc.assert(
      fc.property(magic, fc.uint8Array({ maxLength: 80 }), (head, rest) => {
        sniffImage({ bytes: Buffer.concat([Buffer.from(head, "hex"), rest]) });
      }),
    );
  });
});
