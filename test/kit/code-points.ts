import * as fc from "fast-check";

const SURROGATES = 0x800;

/**
 * A unit of `fc.string` with every code point but surrogates. The unit `binary` of fast-check builds
 * a table of all code points, which takes over a second in each process.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((at) => String.fromCodePoint(at < 0xd800 ? at : at + SURROGATES));
