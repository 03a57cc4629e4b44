//! Pictures, as large as a model can use them and upright.

use std::io::Cursor;

use ::image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, imageops::FilterType,
    metadata::Orientation,
};

/// The longer side of a picture, in pixels; what models look at.
pub(super) const MAX_SIDE: u32 = 1_568;

/// The largest picture that is decoded, in pixels of one side.
const MAX_DECODED_SIDE: u32 = 16_384;

/// The most memory that decoding one picture may take, in bytes.
const MAX_MEMORY: u64 = 512 << 20;

/// A picture to be sent.
pub(super) struct Picture {
    pub(super) bytes: Vec<u8>,
    pub(super) mime_type: &'static str,
    /// Whether it is smaller than the file's.
    pub(super) scaled: Option<Scaled>,
}

/// Width and height in pixels, as the picture is looked at.
pub(super) struct Scaled {
    pub(super) from: (u32, u32),
    pub(super) to: (u32, u32),
}

/// Why a picture cannot be shown, in words.
pub(super) type Reason = String;

/// The formats that are sent as pictures.
pub(super) fn format_of(beginning: &[u8]) -> Option<ImageFormat> {
    let format = ::image::guess_format(beginning).ok()?;
    mime_type(format).map(|_| format)
}

fn mime_type(format: ImageFormat) -> Option<&'static str> {
    Some(match format {
        ImageFormat::Png => "image/png",
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::Gif => "image/gif",
        ImageFormat::WebP => "image/webp",
        _ => return None,
    })
}

/// Scales and turns the picture, where that changes anything; else it stays byte for byte.
pub(super) fn prepare(bytes: Vec<u8>, format: ImageFormat) -> Result<Picture, Reason> {
    let mut reader = ImageReader::with_format(Cursor::new(&bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE);
    limits.max_image_height = Some(MAX_DECODED_SIDE);
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| in_words(&error))?;
    let (width, height) = decoder.dimensions();
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| in_words(&error))?;
    if width.max(height) <= MAX_SIDE && orientation == Orientation::NoTransforms {
        return Ok(Picture {
            bytes,
            mime_type: mime_type(format).unwrap_or("application/octet-stream"),
            scaled: None,
        });
    }
    let is_large = width.max(height) > MAX_SIDE;
    if is_large {
        picture = picture.resize(MAX_SIDE, MAX_SIDE, FilterType::CatmullRom);
    }
    let is_wide = picture.width() >= picture.height();
    picture.apply_orientation(orientation);
    let was_turned = is_wide != (picture.width() >= picture.height());
    let scaled = is_large.then(|| Scaled {
        from: if was_turned {
            (height, width)
        } else {
            (width, height)
        },
        to: (picture.width(), picture.height()),
    });
    // What was a photograph stays one; everything else keeps its exact colours and transparency.
    let (format, picture) = match format {
        ImageFormat::Jpeg => (ImageFormat::Jpeg, DynamicImage::from(picture.into_rgb8())),
        _ => (ImageFormat::Png, DynamicImage::from(picture.into_rgba8())),
    };
    let mut encoded = Cursor::new(Vec::new());
    picture
        .write_to(&mut encoded, format)
        .map_err(|error| in_words(&error))?;
    Ok(Picture {
        bytes: encoded.into_inner(),
        mime_type: mime_type(format).unwrap_or("application/octet-stream"),
        scaled,
    })
}

fn in_words(error: &ImageError) -> Reason {
    match error {
        ImageError::Limits(_) => format!(
            "it is larger than {MAX_DECODED_SIDE} × {MAX_DECODED_SIDE} pixels or needs more than {} MiB; make it smaller first, \
             for example with `python3` and Pillow",
            MAX_MEMORY >> 20
        ),
        other => format!("it cannot be read: {other}"),
    }
}
