//! The engine's memory. The worker restores it to an earlier image after a call, so that the call leaves no data
//! behind. Passing this memory to a C library needs unsafe code, which runs in workers only (docs/decisions/0064).
#![expect(unsafe_code, reason = "the engine takes its memory by pointers")]

use std::io;
use std::ptr::{self, NonNull};

use rquickjs::allocator::Allocator;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// The ratio of the region's size to the script's memory limit. Freed blocks are reused for their own size class only,
/// so the region must be larger than the limit.
const ROOM: usize = 4;

/// The number of bytes added to a script's memory limit when the script reaches it. The engine needs this memory to
/// create the out-of-memory error with its position.
const OUT_OF_MEMORY_RESERVE: usize = 64 << 10;

/// The header of each block. It also aligns the block.
#[repr(C, align(16))]
struct Block {
    /// The number of bytes after the header, which is the block size of the class.
    size: usize,
    /// The next free block of the same class. Used only while this block is free.
    next: *mut Block,
}

/// The allocator's data. It is at the start of the region, so that every image contains it.
#[repr(C, align(16))]
struct AllocatorState {
    /// The number of bytes at the start of the region that were ever used since it was cleared. All bytes after them
    /// are zero.
    used: usize,
    /// The number of allocated bytes; `most` is its limit.
    allocated: usize,
    most: usize,
    /// True if an allocation exceeded the limit.
    refused: bool,
    /// The free blocks of each class.
    free: [*mut Block; CLASSES],
}

/// The number of size classes: four for each power of two, from 64 bytes on.
const CLASSES: usize = 4 * 26;

const SMALLEST: usize = 64;

/// Returns the class for blocks of `size` bytes and its block size, or `None` if no class is that large.
fn class_of(size: usize) -> Option<(usize, usize)> {
    let size = size.max(SMALLEST);
    // The largest power of two below `size`, and the number of its quarters to add, rounded up.
    let doubling = (size - 1).ilog2().max(SMALLEST.ilog2() - 1);
    let base = 1_usize.checked_shl(doubling)?;
    let quarters = (size - base).div_ceil(base / 4);
    let class = (doubling + 1 - SMALLEST.ilog2()) as usize * 4 + quarters;
    (class < CLASSES).then(|| (class, base + quarters * (base / 4)))
}

/// A region of memory with one engine in it.
pub(super) struct Memory {
    state: NonNull<AllocatorState>,
    bytes: usize,
    most: usize,
}

impl AllocatorState {
    fn new(most: usize) -> AllocatorState {
        AllocatorState {
            used: size_of::<AllocatorState>(),
            allocated: 0,
            most,
            refused: false,
            free: [ptr::null_mut(); CLASSES],
        }
    }

    /// Records that an allocation exceeded the limit. The first time, also raises the limit by
    /// [`OUT_OF_MEMORY_RESERVE`].
    fn refuse(&mut self) {
        if !self.refused {
            self.refused = true;
            self.most += OUT_OF_MEMORY_RESERVE;
        }
    }
}

/// The content of a region at one time.
pub(super) struct Image(Vec<u8>);

impl Memory {
    /// Creates a region for engines that use up to `most` bytes. It lives as long as the process.
    pub(super) fn new(most: usize) -> io::Result<Memory> {
        let bytes =
            (size_of::<AllocatorState>() + most.saturating_mul(ROOM) + OUT_OF_MEMORY_RESERVE).next_multiple_of(1 << 16);
        let (rights, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, rights, kind)? };
        let state = NonNull::new(start.cast::<AllocatorState>()).ok_or_else(|| io::Error::other("no memory"))?;
        let memory = Memory { state, bytes, most };
        // SAFETY: the mapping is larger than the bookkeeping, and aligned to a page.
        unsafe { state.write(AllocatorState::new(most)) };
        Ok(memory)
    }

    pub(super) fn allocator(&self) -> RegionAllocator {
        RegionAllocator { state: self.state, bytes: self.bytes }
    }

    /// Returns an image of the current content.
    pub(super) fn image(&self) -> Image {
        let used = self.used();
        let mut bytes = Vec::with_capacity(used);
        // SAFETY: the first `used` bytes of the region were written or are the kernel's zeros, and nothing runs in it
        // now.
        unsafe {
            ptr::copy_nonoverlapping(self.state.as_ptr().cast::<u8>(), bytes.as_mut_ptr(), used);
            bytes.set_len(used);
        }
        Image(bytes)
    }

    /// Restores the content of an image.
    ///
    /// # Safety
    /// After the call, only pointers into the region that were valid when the image was taken may be used. Newer
    /// pointers, and those of another image, must not be used.
    pub(super) unsafe fn put_back(&mut self, image: &Image) {
        let Image(bytes) = image;
        let start = self.state.as_ptr().cast::<u8>();
        let used = self.used();
        // SAFETY: images come from this region, so they fit; the caller is responsible for pointers into it.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            self.clear(bytes.len(), used);
        }
    }

    /// Clears the region.
    ///
    /// # Safety
    /// Pointers into the region from outside must not be used before their image is restored.
    pub(super) unsafe fn wipe(&mut self) {
        let used = self.used();
        // SAFETY: as above.
        unsafe {
            self.state.write(AllocatorState::new(self.most));
            self.clear(size_of::<AllocatorState>(), used);
        }
    }

    /// Returns true if an allocation has exceeded the limit since the region was cleared or restored.
    pub(super) fn has_refused(&self) -> bool {
        // SAFETY: the bookkeeping exists.
        unsafe { (*self.state.as_ptr()).refused }
    }

    fn used(&self) -> usize {
        // SAFETY: the bookkeeping exists. If a bug of the engine has overwritten it, the value is still clamped to the
        // region.
        unsafe { (*self.state.as_ptr()).used }.clamp(size_of::<AllocatorState>(), self.bytes)
    }

    /// Fills a range with zeros. A large range is returned to the kernel, which replaces it with zeroed pages on the
    /// next use.
    unsafe fn clear(&mut self, from: usize, to: usize) {
        /// The size at which filling takes about as long as returning the pages to the kernel and getting new ones.
        const MUCH: usize = 1 << 20;
        const PAGE: usize = 1 << 16;
        if to <= from {
            return;
        }
        let start = self.state.as_ptr().cast::<u8>();
        let page = from.next_multiple_of(PAGE);
        // SAFETY: the caller ensures that the range is within the region, and no other code uses it.
        unsafe {
            let is_given =
                to - from > MUCH && madvise(start.add(page).cast(), self.bytes - page, Advice::LinuxDontNeed).is_ok();
            let end = if is_given { page } else { to };
            ptr::write_bytes(start.add(from), 0, end - from);
        }
    }
}

pub(super) struct RegionAllocator {
    state: NonNull<AllocatorState>,
    bytes: usize,
}

// SAFETY: blocks are within the region, aligned to 16 bytes and as large as stated, and each is allocated once until it
// is freed.
unsafe impl Allocator for RegionAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        // SAFETY: the bookkeeping exists, and no other code uses it during this call.
        unsafe {
            let state = self.state.as_mut();
            let Some((class, size)) = class_of(size).filter(|(_, size)| state.allocated + size <= state.most) else {
                state.refuse();
                return ptr::null_mut();
            };
            let block = state.free[class];
            if !block.is_null() {
                state.free[class] = (*block).next;
                state.allocated += size;
                return block.add(1).cast();
            }
            let end = state.used + size_of::<Block>() + size;
            if end > self.bytes - if state.refused { 0 } else { OUT_OF_MEMORY_RESERVE } {
                state.refuse();
                return ptr::null_mut();
            }
            state.allocated += size;
            let block = self.state.as_ptr().cast::<u8>().add(state.used).cast::<Block>();
            state.used = end;
            block.write(Block { size, next: ptr::null_mut() });
            block.add(1).cast()
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let size = count.saturating_mul(size);
        let block = self.alloc(size);
        if !block.is_null() {
            // SAFETY: the block has that size.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    unsafe fn dealloc(&mut self, at: *mut u8) {
        // SAFETY: a freed block was allocated here, so it has a header with its class.
        unsafe {
            let block = at.cast::<Block>().sub(1);
            let Some((class, size)) = class_of((*block).size) else { return };
            let state = self.state.as_mut();
            state.allocated = state.allocated.saturating_sub(size);
            (*block).next = state.free[class];
            state.free[class] = block;
        }
    }

    unsafe fn realloc(&mut self, at: *mut u8, size: usize) -> *mut u8 {
        if at.is_null() {
            return self.alloc(size);
        }
        // SAFETY: as above; the two blocks differ.
        unsafe {
            let has = RegionAllocator::usable_size(at);
            if (has / 2..=has).contains(&size) {
                return at;
            }
            // The block counts once, although both copies exist until the old one is freed.
            let state = self.state.as_mut();
            state.allocated = state.allocated.saturating_sub(has);
            let to = self.alloc(size);
            let state = self.state.as_mut();
            state.allocated = state.allocated.saturating_add(has);
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
    fn restoring_an_image_undoes_all_changes() {
        let mut memory = Memory::new(4 << 20).unwrap();
        let mut allocator = memory.allocator();
        let kept = allocator.alloc(100);
        // SAFETY: the destination was allocated with this size.
        unsafe {
            kept.write_bytes(7, 100);
            let image = memory.image();
            let first: Vec<usize> = [10, 3000, 2 << 20].map(|size| allocator.alloc(size) as usize).to_vec();
            (first[1] as *mut u8).write_bytes(9, 3000);
            (first[2] as *mut u8).write_bytes(9, 2 << 20);
            kept.write_bytes(8, 100);
            allocator.dealloc(kept);
            memory.put_back(&image);
            assert_eq!(std::slice::from_raw_parts(kept, 100), [7; 100]);
            let again: Vec<usize> = [10, 3000, 2 << 20].map(|size| allocator.alloc(size) as usize).to_vec();
            assert_eq!(first, again);
            assert!(std::slice::from_raw_parts(again[2] as *const u8, 2 << 20).iter().all(|byte| *byte == 0));
            let grown = allocator.realloc(again[2] as *mut u8, 3 << 20);
            assert!(!grown.is_null() && !memory.has_refused());
            assert!(allocator.alloc(2 << 20).is_null() && memory.has_refused(), "more than there is");
            memory.put_back(&image);
            assert!(!memory.has_refused());
        }
    }
}
