// Generates a landscape from a seed: sky, sun, and hills in layers. Every pixel depends only on its
// position, so a coarse image is the same landscape with larger cells.
import { createSeededRandom } from "./seeded-random.ts";

export type Colour = readonly [red: number, green: number, blue: number];
/**
 * A function from a column to a function from a row to a color. x and y are from 0 to 1, and y
 * points down. `sky` pixels may be transparent.
 */
export type Scene = (x: number) => (y: number) => { colour: Colour; sky: boolean };

const LAYERS = 4;
const SUN: Colour = [255, 244, 214];

/** Creates a scene. `aspect` is width divided by height, so that the sun is round. */
export function createScene(aspect: number, ...seed: readonly unknown[]): Scene {
  const next = createSeededRandom("scene", ...seed);
  const hue = next();
  const high = colour(hue, 0.55, 0.55);
  const low = colour(hue + 0.08, 0.7, 0.85);
  const sun = { x: 0.15 + 0.7 * next(), y: 0.15 + 0.3 * next(), r: 0.05 + 0.06 * next() };
  const hills = Array.from({ length: LAYERS }, (_, i) => ({
    base: 0.5 + 0.13 * i,
    colour: colour(hue + 0.4 + 0.05 * i, 0.45, 0.5 - 0.09 * i),
    waves: Array.from({ length: 3 }, (_, k) => ({
      size: (0.08 - 0.012 * i) / (k + 1),
      count: (2 + 3 * k) * (0.7 + 0.6 * next()),
      shift: next() * 2 * Math.PI,
    })),
  }));
  const nearest = hills.toReversed();
  return (x) => {
    const edges = nearest.map(({ base, waves }) =>
      waves.reduce(
        (at, { size, count, shift }) => at - size * Math.sin(2 * Math.PI * count * x + shift),
        base,
      ),
    );
    return (y) => {
      const hill = nearest[edges.findIndex((edge) => y > edge)];
      if (hill) return { colour: mix(hill.colour, low, 0.25 * (1 - y)), sky: false };
      const far = Math.hypot((x - sun.x) * aspect, y - sun.y) / sun.r;
      if (far < 1) return { colour: SUN, sky: false };
      const glow = Math.max(0, 1 - (far - 1) / 3) * 0.5;
      return { colour: mix(mix(high, low, y / 0.7), SUN, glow), sky: true };
    };
  };
}

const mix = (a: Colour, b: Colour, share: number): Colour => {
  const t = Math.min(1, Math.max(0, share));
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];
};

/** Converts hue, saturation, and lightness from 0 to 1. The hue wraps around. */
function colour(hue: number, saturation: number, lightness: number): Colour {
  const a = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n: number): number => {
    const k = (n + (hue - Math.floor(hue)) * 12) % 12;
    return 255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return [channel(0), channel(8), channel(4)];
}
