//! What the file does besides what every store promises.
