//! The memory of the engine: all of it can be put back, byte by byte, to an earlier image, so that a call leaves nothing behind. A C
//! library is lent this memory, which needs unsafe code; it runs in the worker alone (docs/decisions/0064).
#![expect(unsafe_code, reason = "the engine takes its memory by pointers")]

use std::io;
use std::ptr::{self, NonNull};

use rquickjs::allocator::Allocator;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// Room for each byte that a script may take: blocks are given back to others of their size only, so what is free can't always be used.
const ROOM: usize = 4;

/// What there is beyond the limit once it has been reached: room for the error that says where.
const TO_SAY_SO: usize = 64 << 10;

/// Before each block. Keeps blocks aligned, too.
#[repr(C, align(16))]
struct Block {
    /// Bytes behind this: a class's.
    size: usize,
    /// While it is free: the next one of this class.
    next: *mut Block,
}

/// What is at the start of a region, so that it is part of every image.
#[repr(C, align(16))]
struct Books {
    /// Bytes that have ever been in use since the region was clean; the rest is zeros.
    used: usize,
    /// Bytes that are lent, and how many may be.
    lent: usize,
    most: usize,
    /// Whether more was asked for than there is.
    refused: bool,
    /// The blocks of each class that are free.
    free: [*mut Block; CLASSES],
}

/// Four sizes for each doubling, from 64 bytes on.
const CLASSES: usize = 4 * 26;

const SMALLEST: usize = 64;

/// The class whose blocks have room for `size` bytes, and how many these have; `None` if it is more than anybody should have.
fn class_of(size: usize) -> Option<(usize, usize)> {
    let size = size.max(SMALLEST);
    // The doubling that `size` is above, and how far: in quarters, rounded up.
    let doubling = (size - 1).ilog2().max(SMALLEST.ilog2() - 1);
    let base = 1_usize.checked_shl(doubling)?;
    let quarters = (size - base).div_ceil(base / 4);
    let class = (doubling + 1 - SMALLEST.ilog2()) as usize * 4 + quarters;
    (class < CLASSES).then(|| (class, base + quarters * (base / 4)))
}

/// A region of memory with one engine in it.
pub(super) struct Memory {
    books: NonNull<Books>,
    bytes: usize,
    most: usize,
}

impl Books {
    fn new(most: usize) -> Books {
        Books { used: size_of::<Books>(), lent: 0, most, refused: false, free: [ptr::null_mut(); CLASSES] }
    }

    /// Notes that more was asked for than there is.
    fn refuse(&mut self) {
        if !self.refused {
            self.refused = true;
            self.most += TO_SAY_SO;
        }
    }
}

/// What a region was like at one time.
pub(super) struct Image(Vec<u8>);

impl Memory {
    /// A region for engines that take up to `most` bytes. It is there as long as the process is.
    pub(super) fn new(most: usize) -> io::Result<Memory> {
        let bytes = (size_of::<Books>() + most.saturating_mul(ROOM) + TO_SAY_SO).next_multiple_of(1 << 16);
        let (rights, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that is there.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, rights, kind)? };
        let books = NonNull::new(start.cast::<Books>()).ok_or_else(|| io::Error::other("no memory"))?;
        let memory = Memory { books, bytes, most };
        // SAFETY: the mapping is larger than the books, and aligned to a page.
        unsafe { books.write(Books::new(most)) };
        Ok(memory)
    }

    /// What gives the engine its memory.
    pub(super) fn lend(&self) -> Lent {
        Lent { books: self.books, bytes: self.bytes }
    }

    /// What it is like now.
    pub(super) fn image(&self) -> Image {
        let used = self.used();
        let mut bytes = Vec::with_capacity(used);
        // SAFETY: the region begins with `used` bytes that have been written, or are the kernel's zeros, and nothing runs in it now.
        unsafe {
            ptr::copy_nonoverlapping(self.books.as_ptr().cast::<u8>(), bytes.as_mut_ptr(), used);
            bytes.set_len(used);
        }
        Image(bytes)
    }

    /// Makes it what it was like when the image was taken.
    ///
    /// # Safety
    /// What points into it from outside has to be what did so then: whatever was made since has to be gone, and what was gone when
    /// the image was taken, or is another image's, isn't touched.
    pub(super) unsafe fn put_back(&mut self, image: &Image) {
        let Image(bytes) = image;
        let start = self.books.as_ptr().cast::<u8>();
        let used = self.used();
        // SAFETY: images are taken of this region, so they fit; the caller answers for what points into it.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            self.clear(bytes.len(), used);
        }
    }

    /// Makes it what it was at first.
    ///
    /// # Safety
    /// What points into it from outside isn't touched before its image is put back.
    pub(super) unsafe fn wipe(&mut self) {
        let used = self.used();
        // SAFETY: as above.
        unsafe {
            self.books.write(Books::new(self.most));
            self.clear(size_of::<Books>(), used);
        }
    }

    /// Whether the engine asked for more than there is, since the region was clean or what it is now was put back.
    pub(super) fn has_refused(&self) -> bool {
        // SAFETY: the books are there.
        unsafe { (*self.books.as_ptr()).refused }
    }

    fn used(&self) -> usize {
        // SAFETY: the books are there. Should a fault of the engine have written into them, this is still within the region.
        unsafe { (*self.books.as_ptr()).used }.clamp(size_of::<Books>(), self.bytes)
    }

    /// Fills with zeros. Much of it goes back to the kernel instead, whose next pages are zeros.
    unsafe fn clear(&mut self, from: usize, to: usize) {
        /// About what it takes as long to fill as to ask the kernel, and to be given it again.
        const MUCH: usize = 1 << 20;
        const PAGE: usize = 1 << 16;
        if to <= from {
            return;
        }
        let start = self.books.as_ptr().cast::<u8>();
        let page = from.next_multiple_of(PAGE);
        // SAFETY: from and to are within the region, which is the caller's to say, and nobody else's.
        unsafe {
            let is_given =
                to - from > MUCH && madvise(start.add(page).cast(), self.bytes - page, Advice::LinuxDontNeed).is_ok();
            let end = if is_given { page } else { to };
            ptr::write_bytes(start.add(from), 0, end - from);
        }
    }
}

/// A region as the engine sees it.
pub(super) struct Lent {
    books: NonNull<Books>,
    bytes: usize,
}

// SAFETY: blocks are within the region, aligned to 16 bytes, as large as they say, and each is lent to one until it is given back.
unsafe impl Allocator for Lent {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        // SAFETY: the books are there, and nobody else has them while this runs.
        unsafe {
            let books = self.books.as_mut();
            let Some((class, size)) = class_of(size).filter(|(_, size)| books.lent + size <= books.most) else {
                books.refuse();
                return ptr::null_mut();
            };
            let block = books.free[class];
            if !block.is_null() {
                books.free[class] = (*block).next;
                books.lent += size;
                return block.add(1).cast();
            }
            let end = books.used + size_of::<Block>() + size;
            if end > self.bytes - if books.refused { 0 } else { TO_SAY_SO } {
                books.refuse();
                return ptr::null_mut();
            }
            books.lent += size;
            let block = self.books.as_ptr().cast::<u8>().add(books.used).cast::<Block>();
            books.used = end;
            block.write(Block { size, next: ptr::null_mut() });
            block.add(1).cast()
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let size = count.saturating_mul(size);
        let block = self.alloc(size);
        if !block.is_null() {
            // SAFETY: it has room for that.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    unsafe fn dealloc(&mut self, at: *mut u8) {
        // SAFETY: what is given back was lent, so there is a block before it, of a class.
        unsafe {
            let block = at.cast::<Block>().sub(1);
            let Some((class, size)) = class_of((*block).size) else { return };
            let books = self.books.as_mut();
            books.lent = books.lent.saturating_sub(size);
            (*block).next = books.free[class];
            books.free[class] = block;
        }
    }

    unsafe fn realloc(&mut self, at: *mut u8, size: usize) -> *mut u8 {
        if at.is_null() {
            return self.alloc(size);
        }
        // SAFETY: as above; the two blocks are different ones.
        unsafe {
            let has = Lent::usable_size(at);
            if (has / 2..=has).contains(&size) {
                return at;
            }
            // It counts once, although for a moment it is there twice.
            let books = self.books.as_mut();
            books.lent = books.lent.saturating_sub(has);
            let to = self.alloc(size);
            let books = self.books.as_mut();
            books.lent = books.lent.saturating_add(has);
            if !to.is_null() {
                ptr::copy_nonoverlapping(at, to, has.min(size));
                self.dealloc(at);
            }
            to
        }
    }

    unsafe fn usable_size(at: *mut u8) -> usize {
        // SAFETY: as above.
        unsafe { (*at.cast::<Block>().sub(1)).size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_room_and_waste_a_quarter_at_most() {
        let mut before = 0;
        for size in (1..5000).chain([65_535, 65_536, 65_537, 16 << 20]) {
            let (class, room) = class_of(size).unwrap();
            assert!(room >= size && (size < SMALLEST || room <= size + size / 4 + 1), "{size}: {room}");
            assert!(class >= before && class_of(room) == Some((class, room)), "{size}: class {class}");
            before = class;
        }
        assert_eq!(class_of(usize::MAX), None);
    }

    #[test]
    fn what_was_done_since_an_image_never_happened() {
        let mut memory = Memory::new(4 << 20).unwrap();
        let mut lent = memory.lend();
        let kept = lent.alloc(100);
        // SAFETY: what is written to was lent, and is as large.
        unsafe {
            kept.write_bytes(7, 100);
            let image = memory.image();
            let first: Vec<usize> = [10, 3000, 2 << 20].map(|size| lent.alloc(size) as usize).to_vec();
            (first[1] as *mut u8).write_bytes(9, 3000);
            (first[2] as *mut u8).write_bytes(9, 2 << 20);
            kept.write_bytes(8, 100);
            lent.dealloc(kept);
            memory.put_back(&image);
            assert_eq!(std::slice::from_raw_parts(kept, 100), [7; 100]);
            let again: Vec<usize> = [10, 3000, 2 << 20].map(|size| lent.alloc(size) as usize).to_vec();
            assert_eq!(first, again);
            assert!(std::slice::from_raw_parts(again[2] as *const u8, 2 << 20).iter().all(|byte| *byte == 0));
            let grown = lent.realloc(again[2] as *mut u8, 3 << 20);
            assert!(!grown.is_null() && !memory.has_refused());
            assert!(lent.alloc(2 << 20).is_null() && memory.has_refused(), "more than there is");
            memory.put_back(&image);
            assert!(!memory.has_refused());
        }
    }
}
